#!/bin/bash
# The hardened units under a real systemd, in a privileged container of Debian 12: first with the usual folders, then
# with others and port 443, then an upgrade while they run, then a removal.
set -euo pipefail
package=$(basename "$(echo "$DIST"/slipway_"$VERSION"-*+deb12_*.deb)")
container=slipway-test-systemd-$$
image=localhost/slipway-test-systemd

inside() { "$ENGINE" exec --interactive "$container" bash -euo pipefail -c "$1"; }
clean() {
    "$ENGINE" rm --force --time 0 "$container" > /dev/null 2>&1 || true
    "$ENGINE" rmi --force "$image" > /dev/null 2>&1 || true
}
answers() { inside "/usr/lib/slipway/venv/bin/python /tests/answers.py $1" || { inside 'journalctl --no-pager -n 40 -u "slipway*"'; exit 1; }; }
# says TEXT COMMAND — its output contains the text.
says() {
    local seen
    seen=$(inside "$2" 2>&1) || true
    grep -qF -- "$1" <<< "$seen" || { echo "FAILED: no \"$1\" in: $seen"; exit 1; }
}
runs() { inside 'systemctl is-active slipway.target slipway-web slipway-worker slipway-proxy' > /dev/null; }
trap clean EXIT

"$ENGINE" run --detach --name "$container" --volume "$SITE_DIR:/run/site:ro" --volume "$DIST:/dist:ro" \
    --volume "$PWD/tests/packages:/tests:ro" --volume "$PWD/cluster/build/with-site:/usr/local/bin/with-site:ro" \
    --env SUITE=bookworm --env DEBIAN_FRONTEND=noninteractive debian:bookworm-slim sleep infinity > /dev/null
inside ". /tests/common.sh; use_mirrors; apt_get install systemd systemd-sysv dbus '/dist/$package' > /tmp/apt.log 2>&1"
"$ENGINE" commit --quiet "$container" "$image" > /dev/null
"$ENGINE" rm --force --time 0 "$container" > /dev/null
"$ENGINE" run --detach --name "$container" --privileged --systemd=always --volume "$DIST:/dist:ro" \
    --volume "$PWD/tests/packages:/tests:ro" "$image" /lib/systemd/systemd > /dev/null
until inside 'systemctl list-units' > /dev/null 2>&1; do sleep 0.5; done

echo "- the usual folders"
inside 'printf "[web]\npublic_url = \"http://localhost:8080\"\n" > /etc/slipway/slipway.toml
    slipway render haproxy --output /etc/slipway/haproxy.cfg && systemctl start slipway.target'
answers http://localhost:8080
inside 'systemctl reload slipway-proxy'
answers http://localhost:8080
runs
inside 'stat -c "%a %U" /var/lib/slipway /run/slipway' | sort -u | grep -x '700 slipway' > /dev/null
inside 'systemctl stop slipway.target'

echo "- other folders, port 443"
inside 'printf "[web]\npublic_url = \"http://localhost:443\"\nlisten = \"0.0.0.0:443\"\n[state]\ndirectory = \"/srv/portal/state\"\nrun = \"/srv/portal/run\"\n" > /etc/slipway/slipway.toml
    install -d -o slipway -g slipway -m 700 /srv/portal/state /srv/portal/run
    slipway render haproxy --output /etc/slipway/haproxy.cfg
    slipway render systemd --output /etc/systemd/system > /dev/null
    systemctl daemon-reload
    systemctl enable --now slipway.target'
answers http://localhost:443
runs

echo "- an upgrade while they run"
pids=$(inside 'systemctl show --value -p MainPID slipway-web slipway-worker slipway-proxy' | xargs)
inside "dpkg -i '/dist/$package' > /dev/null"
answers http://localhost:443
runs
read -r web worker proxy <<< "$(inside 'systemctl show --value -p MainPID slipway-web slipway-worker slipway-proxy' | xargs)"
[[ $pids != *"$web"* && $pids != *"$worker"* && $pids == *"$proxy" ]] || { echo "not restarted, or the proxy was: $pids"; exit 1; }
says 'The portal runs as the settings say.' 'slipway apply'

echo "- a new setting, an upgrade with settings that are wrong, and with stopped services"
says 'slipway-web: reload; its workers are replaced one by one' 'sed -i "s/^\[web\]/&\nsite_name = \"Campus\"/" /etc/slipway/slipway.toml && slipway apply'
[ "$(inside 'systemctl show --value -p MainPID slipway-web slipway-proxy' | xargs)" = "$web $proxy" ]
inside 'cp /etc/slipway/slipway.toml /root/right && echo "lissten = 1" >> /etc/slipway/slipway.toml'
says 'this release is installed, but' "dpkg -i '/dist/$package'"
answers http://localhost:443
runs
inside 'cp /root/right /etc/slipway/slipway.toml && systemctl stop slipway-web slipway-worker'
inside "dpkg -i '/dist/$package' > /dev/null"
! inside 'systemctl is-active slipway-web' > /dev/null || { echo "a stopped service was started"; exit 1; }
says 'slipway-web: start' 'slipway apply'
answers http://localhost:443
runs

echo "- removal"
inside 'dpkg -r slipway > /dev/null && ! systemctl is-active slipway-web slipway-worker slipway-proxy > /dev/null
    test -e /srv/portal/state/ca/user_ca && test -e /var/lib/slipway/ca/user_ca'
