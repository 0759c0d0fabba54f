#!/bin/bash
# shellcheck disable=SC2016  # such commands are expanded in containers
# docs/administrators/install.md as it is written, by somebody who has nothing else: a fresh Debian 13 with systemd, in front
# of an embedded cluster of its own, until the first session runs. Then the same with the container image and with
# the Ansible role. Needs COMPOSE_PROJECT_NAME and PORT of a cluster that runs; the cluster's own portal is stopped.
#   guide.sh [package] [container] [role]      by default, all
set -euo pipefail
# shellcheck source-path=SCRIPTDIR/../../cluster
. cluster/lib.sh
choose_engine
GUIDE=$REPO_DIR/docs/administrators/install.md
NAME=slipway.example.org
work=$(mktemp -d)
host=$COMPOSE_PROJECT_NAME-guide
image=localhost/slipway-guide:$SLIPWAY_CLONE
network=$(cat "$PROJECT_DIR/network")
address=$network.50
to_site=(--network "${COMPOSE_PROJECT_NAME}_cluster" --ip "$address" --add-host "login.example.org:$network.11"
    --add-host "n1:$network.21" --add-host "n2:$network.22" --add-host "$NAME:$address")

say() { printf -- '- %s\n' "$*"; }
on() { engine exec --interactive --workdir /root "$1" bash -euo pipefail -c "$2"; }
site() { on "$(container_of "$1")" "$2"; }
# block HEADING NUMBER [OLD=NEW…] — a block of the guide.
block() { python3 tests/packages/blocks.py "$GUIDE" "$@"; }
clean() {
    engine rm --force --time 0 "$host" > /dev/null 2>&1 || true
    engine volume rm --force "$host-state" > /dev/null 2>&1 || true
    rm -rf "$work"
}
trap clean EXIT

# A Debian 13 as it is installed on a server, with this machine's mirrors.
make_image() {
    ! image_exists_here || return 0
    engine run --name "$host" --env SUITE=trixie --env DEBIAN_FRONTEND=noninteractive \
        --volume "$SITE_DIR:/run/site:ro" --volume "$PWD/tests/packages:/tests:ro" \
        --volume "$PWD/cluster/build/with-site:/usr/local/bin/with-site:ro" debian:trixie-slim bash -c \
        '. /tests/common.sh; use_mirrors; apt_get install systemd systemd-sysv dbus openssl
         cat /run/site/apt.conf > /etc/apt/apt.conf.d/90site; echo "APT::Get::Assume-Yes \"true\";" >> /etc/apt/apt.conf.d/90site' > "$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; exit 1; }
    engine commit --quiet "$host" "$image" > /dev/null
    engine rm --force "$host" > /dev/null
}
image_exists_here() { engine image inspect "$image" > /dev/null 2>&1; }

# start_host — the portal's host to be; the arguments let systemd 257 run where control groups are those of version 1.
start_host() {
    engine rm --force --time 0 "$host" > /dev/null 2>&1 || true
    engine run --detach --name "$host" --hostname "$NAME" --privileged --systemd=always "${to_site[@]}" \
        --volume "$CLUSTER_SOFTWARE:/srv/slipway" --volume "$SITE_DIR:/run/site:ro" --volume "$DIST:/dist:ro" \
        --volume "$REPO_DIR/deploy:/deploy:ro" --volume "$PWD/cluster/build/with-site:/usr/local/bin/with-site:ro" "$image" /lib/systemd/systemd systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 > /dev/null
    until on "$host" 'systemctl list-units' > /dev/null 2>&1; do sleep 0.5; done
    on "$host" 'cp /dist/slipway* .'
}

# The site as it is before anybody has read the guide: no account and no line of sshd_config is Slipway's.
prepare_site() {
    engine stop --time 5 "$(container_of portal)" > /dev/null 2>&1
    engine rm --force --time 0 "$host" > /dev/null 2>&1 || true
    for node in n1 n2; do site "$node" "grep -q '$NAME' /etc/hosts || echo '$address $NAME' >> /etc/hosts"; done
    site ctl 'sacctmgr -i delete user slipway-operator > /dev/null 2>&1 || true; userdel -r slipway-operator 2> /dev/null || true'
    site login 'for name in slipway slipway-operator; do pkill -u $name 2> /dev/null || true; userdel -rf $name 2> /dev/null || true; done
        sed -i -e "/^Match Address/,\$d" -e "/^RevokedKeys/d" -e "/^MaxStartups/d" -e "/^PerSourcePenalties/d" /etc/ssh/sshd_config
        rm -f /etc/ssh/slipway_user_ca.pub /etc/ssh/slipway_revoked /usr/local/bin/slipway /etc/slipway/batch.json
        printf "#!/bin/sh\nexec supervisorctl signal HUP sshd > /dev/null\n" > /usr/local/bin/systemctl
        chmod 755 /usr/local/bin/systemctl'
}

# An authority of the site's, and a certificate for portal and apps, as files of certbot's names.
make_certificate() {
    [ -e "$work/ca.crt" ] || (cd "$work" && {
        openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=Site CA" -keyout ca.key -out ca.crt
        openssl req -newkey rsa:2048 -nodes -subj "/CN=$NAME" -keyout privkey.pem -out request
        printf 'subjectAltName=DNS:%s,DNS:*.apps.example.net\n' "$NAME" > names
        openssl x509 -req -in request -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile names -out fullchain.pem
    } > /dev/null 2>&1)
}

# Step 4, with the authority on standard input.
set_up_login() {
    block "4." 1 | grep '^useradd --create-home' | site ctl 'bash -e'
    block "4." 1 | site login 'bash -e'
    site login 'cat > /etc/ssh/slipway_user_ca.pub; touch /etc/ssh/slipway_revoked'
    block "4." 2 | site login 'cat - /etc/ssh/sshd_config > /tmp/new && cat /tmp/new > /etc/ssh/sshd_config'
    block "4." 3 "192.0.2.10=$address" | site login 'cat >> /etc/ssh/sshd_config'
    block "4." 4 | site login 'bash -e'
}

first_launch() {
    PYTHONPATH=$REPO_DIR "$REPO_DIR/.venv/bin/python" tests/packages/first_launch.py "$1" "$address" "$work/ca.crt" \
        alice "$(sed -n 's/^alice://p' "$CLUSTER_PASSWORDS")"
}

try_package() {
    start_host
    local started=$SECONDS
    block "1." 1 "VERSION=$VERSION" | on "$host" 'cat > step; bash -e step > log 2>&1 < /dev/null || { tail -n 20 log; exit 1; }; tail -n 1 log'
    block "1." 2 | on "$host" 'cat > /etc/slipway/slipway.toml'
    say "installed after $((SECONDS - started)) s"
    make_certificate
    for file in fullchain privkey; do on "$host" "cat > $file.pem" < "$work/$file.pem"; done
    block "2." 1 | on "$host" 'bash -e'
    block "3." 1 | on "$host" 'bash -e'
    on "$host" 'cat /var/lib/slipway/ca/user_ca.pub' | set_up_login
    on "$host" 'sed -i "s/^\[slurm\]/&\noperator = \"slipway-operator\"/" /etc/slipway/slipway.toml'
    say "the login node is set up after $((SECONDS - started)) s"
    block "5." 1 "VERSION=$VERSION" | grep '^install' | on "$host" 'bash -e'
    on "$host" 'slipway render batch' > "$work/batch.json"
    site login "cat > slipway-$VERSION-login" < "$DIST/slipway-$VERSION-login"
    site login 'cat > batch.json' < "$work/batch.json"
    block "5." 2 "VERSION=$VERSION" | site login 'bash -e'
    block "6." 1 | on "$host" 'cat > step; bash -e step < /dev/null' || { on "$host" 'journalctl --no-pager -n 60 -u "slipway*"'; exit 1; }
    say "checked after $((SECONDS - started)) s"
    first_launch "https://$NAME"
    say "the first session has run after $((SECONDS - started)) s"
    on "$host" 'systemctl is-active slipway.target slipway-web slipway-worker slipway-proxy' | sort -u
}

# settings [OLD=NEW…] — those of the guide, with step 4's line.
settings() { block "1." 2 "$@" | sed 's/^\[slurm\]/&\noperator = "slipway-operator"/'; }

try_container() {
    local started=$SECONDS
    make_certificate
    install -d -m 755 "$work/etc"
    cat "$work/fullchain.pem" "$work/privkey.pem" > "$work/etc/tls.pem"
    site login 'echo "login.example.org $(cut -d" " -f1,2 /etc/ssh/keys/ssh_host_ed25519_key.pub)"' > "$work/etc/known_hosts"
    (block "In a container" 1 "VERSION=$VERSION" "podman=$ENGINE" "/etc/slipway=$work/etc" > "$work/step" && cd "$DIST" && bash -e "$work/step")
    # On the cluster's network instead of ports of this machine, so the portal's address has the port.
    settings "0.0.0.0:443=0.0.0.0:8080" "$NAME\"=$NAME:8080\"" > "$work/etc/slipway.toml"
    block "In a container" 2 "VERSION=$VERSION" "podman=$ENGINE" "--name slipway=--name $host" "-v slipway-state=-v $host-state" \
        "-p 443:8080 -p 8443:8443=${to_site[*]}" "-v /etc/slipway:=-v $work/etc:" "-v /srv/slipway:=-v $CLUSTER_SOFTWARE:" \
        "exec slipway=exec $host" > "$work/step"
    sed '/exec/d' "$work/step" | bash -e
    until on "$host" 'test -e /var/lib/slipway/ca/user_ca.pub' 2> /dev/null; do sleep 0.5; done
    grep cat "$work/step" | bash -e | set_up_login
    grep check "$work/step" | bash -e || { engine logs --tail 30 "$host"; exit 1; }
    say "checked after $((SECONDS - started)) s"
    first_launch "https://$NAME:8080"
    say "the first session has run after $((SECONDS - started)) s"
    sed -i 's/^\[web\]/&\nsite_name = "Campus"/' "$work/etc/slipway.toml"
    engine exec "$host" slipway apply
    curl -sS --cacert "$work/ca.crt" --resolve "$NAME:8080:$address" "https://$NAME:8080/login" | grep -q Campus
}

try_role() {
    start_host
    on "$host" 'with-site apt-get -qq install python3-venv python3-apt > log 2>&1 < /dev/null && python3 -m venv /opt/ansible &&
        with-site /opt/ansible/bin/pip install --quiet "ansible-core=='"$(sed -n 's/^ANSIBLE_CORE=//p' tests/packages/ansible.sh)"'"'
    local started=$SECONDS
    make_certificate
    cat "$work/fullchain.pem" "$work/privkey.pem" | on "$host" 'cat > tls.pem'
    {
        printf 'all:\n  children: {slipway_portal: {hosts: {localhost: {}}}}\n  vars:\n    ansible_connection: local\n'
        printf '    ansible_python_interpreter: /usr/bin/python3\n    slipway_dist: /dist\n    slipway_version: %s\n' "$VERSION"
        printf '    slipway_tls_certificate: /root/tls.pem\n    slipway_known_hosts: "%s"\n    slipway_settings: ' \
            "$(site login 'echo "login.example.org $(cut -d" " -f1,2 /etc/ssh/keys/ssh_host_ed25519_key.pub)"')"
        settings | python3 -c 'import json, sys, tomllib; print(json.dumps(tomllib.loads(sys.stdin.read())))'
    } | on "$host" 'cat > inventory.yml'
    local play='ANSIBLE_NOCOLOR=1 /opt/ansible/bin/ansible-playbook -i inventory.yml /deploy/ansible/site.yml --tags portal < /dev/null'
    on "$host" "$play" > "$work/log" || { tail -n 40 "$work/log"; exit 1; }
    on "$host" 'cat /var/lib/slipway/ca/user_ca.pub' | set_up_login
    say "played after $((SECONDS - started)) s"
    block "6." 1 | grep runuser | on "$host" 'cat > step; bash -e step < /dev/null' | grep -v '^ok'
    first_launch "https://$NAME"
    say "the first session has run after $((SECONDS - started)) s"
    on "$host" "$play" | tail -n 3 | grep 'changed=0 '
    on "$host" 'systemctl is-active slipway.target slipway-web slipway-worker slipway-proxy' | sort -u
}

make_image
[ $# -gt 0 ] || set -- package container role
for part in "$@"; do
    say "$part"
    prepare_site
    "try_$part"
done
