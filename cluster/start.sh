# shellcheck shell=bash
# Starts the containers, whatever an earlier run has left, and waits until they work.

prepare_machine() {
    install_missing
    collect_site
    write_passwords
    choose_network
    choose_app_ports
    if port_is_taken && ! is_running portal; then
        echo "port $PORT of this machine is in use; choose another: PORT=9090 make up"
        return 1
    fi
}

# Random passwords stay the same until the file is deleted; DEMO_PASSWORD replaces them all.
write_passwords() {
    local user
    if [ -n "${DEMO_PASSWORD:-}" ] || [ ! -s "$CLUSTER_PASSWORDS" ]; then
        mkdir -p "$(dirname "$CLUSTER_PASSWORDS")"
        (umask 077 && : >> "$CLUSTER_PASSWORDS")
        for user in alice bob admin; do
            echo "$user:${DEMO_PASSWORD:-$(random_password)}"
        done > "$CLUSTER_PASSWORDS"
    fi
    chmod 600 "$CLUSTER_PASSWORDS"
    [ -z "${SUDO_UID:-}" ] || chown "$SUDO_UID" "$CLUSTER_PASSWORDS"
}

random_password() { head -c 9 /dev/urandom | base64 | tr '+/' 'xy'; }

# A /24 that nothing on this machine uses, kept as long as this project's network exists.
choose_network() {
    local net=10.213 third
    ! network_is_ours || return 0
    for third in {77..140}; do
        if ! network_is_used "$net.$third"; then
            echo "$net.$third" > "$PROJECT_DIR/network"
            return
        fi
    done
    echo "no free network between $net.77.0 and $net.140.0"
    return 1
}

# 50 ports in a row that nothing on this machine uses, kept as long as the portal's container runs.
choose_app_ports() {
    local first
    if [ -s "$PROJECT_DIR/ports" ] && is_running portal; then
        return
    fi
    for first in $(cat "$PROJECT_DIR/ports" 2>/dev/null) $(seq 10000 50 14950); do
        if ! ports_are_used "$first"; then
            echo "$first" > "$PROJECT_DIR/ports"
            return
        fi
    done
    echo "no 50 free ports in a row between 10000 and 14999"
    return 1
}

# Ports of other projects of this clone count as used, even if their containers do not run yet, and so do
# those that the firewall still forwards for containers that were killed together with their engine.
ports_are_used() {
    local other
    for other in "$CACHE_DIR"/projects/*/ports; do
        if [ "$other" != "$PROJECT_DIR/ports" ] && grep -qsxF "$1" "$other"; then
            return 0
        fi
    done
    # Not `grep -q`: iptables-save must not end by SIGPIPE.
    if iptables-save -t nat 2> /dev/null | grep -e "--dport $1:" > /dev/null; then
        return 0
    fi
    ss -Hltn | awk -v first="$1" '{ sub(".*:", "", $4); if ($4 >= first && $4 < first + 50) found = 1 } END { exit !found }'
}

network_is_ours() {
    local known
    known=$(engine network inspect "${COMPOSE_PROJECT_NAME}_cluster" 2>/dev/null) &&
        [ -s "$PROJECT_DIR/network" ] && [[ $known == *"$(cat "$PROJECT_DIR/network")."* ]]
}

# Networks of stopped containers have no route, so the engine's list is checked as well.
network_is_used() {
    local used
    used=$(ip route show; engine network ls --quiet | xargs -r "$ENGINE" network inspect)
    [[ $used == *"$1."* ]]
}

image_of() { engine inspect --format '{{.Image}}' "$1"; }

# Whether the container runs with the current image and settings.
is_current() {
    local container tag
    is_running "$1" || return 1
    container=$(container_of "$1")
    case $1 in
        portal | portal2) tag=localhost/slipway-portal:$SLIPWAY_CLONE ;;
        database) tag=localhost/slipway-database:$SLIPWAY_CLONE ;;
        hub) tag=localhost/slipway-hub:$HUB_TAG ;;
        n1 | n2) tag=localhost/slipway-node:$SLURM_TAG ;;
        *) tag=localhost/slipway-$1:$SLURM_TAG ;;
    esac
    local now
    now=$(engine image inspect --format '{{.Id}}' "$tag")
    [ "${now#sha256:}" = "$(image_of "$container" | sed 's/^sha256://')" ] &&
        [ "$(cat "$PROJECT_DIR/started-$1" 2>/dev/null)" = "$(settings_of)" ]
}

settings_of() { echo "$(sha256sum < "$CLUSTER_DIR/compose.yaml" | cut -c1-16) $(cat "$PROJECT_DIR/network" "$PROJECT_DIR/ports" | tr '\n' ' ') $PORT $HOSTS ${PORT2:-} $HUB $HUB_PORT $SCHEME $APPS $SLURM ${SESSION_HOME:-} ${NODE_MEMORY:-} ${NODE_MAX_CPUS:-}"; }

start_cluster() {
    local service stale=()
    for service in "${SERVICES[@]}"; do
        is_current "$service" || stale+=("$service")
    done
    if [ ${#stale[@]} -gt 0 ]; then
        for service in "${stale[@]}"; do
            remove_container "$service" &
        done
        wait
        compose up -d --no-recreate "${stale[@]}" || start_from_nothing
        for service in "${stale[@]}"; do
            settings_of > "$PROJECT_DIR/started-$service"
        done
    fi
    remove_old_images
    engine exec "$(container_of login)" set-demo-passwords
}

remove_container() {
    local id
    for id in $(engine ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
        --filter "label=com.docker.compose.service=$1"); do
        engine stop -t 10 "$id" || true
        engine rm --force --volumes "$id" || true
    done
}

# Removes what a killed run has left (incomplete networks, dead containers); data stays.
start_from_nothing() {
    echo "could not start with the remains of an earlier run; removing them and trying once more"
    remove_everything_but_data
    compose up -d "${SERVICES[@]}"
}

remove_everything_but_data() {
    local service
    for service in "${SERVICES[@]}" hub portal2 database; do
        remove_container "$service" &
    done
    wait
    engine network rm --force "${COMPOSE_PROJECT_NAME}_cluster" 2>/dev/null ||
        engine network rm "${COMPOSE_PROJECT_NAME}_cluster" 2>/dev/null || true
}

in_login() { engine exec "$(container_of login)" "$@"; }

# On a loaded machine each start takes minutes: it has failed once its container has ended.
PATIENCE=900

# wait_for SERVICE COMMAND… — tries twice a second; the log has the last attempt's output, or the service's.
wait_for() {
    local service=$1 until=$((SECONDS + PATIENCE))
    shift
    until "$@"; do
        is_running "$service" || { echo "the container of $service has ended"; last_lines "$service"; return 1; }
        [ $SECONDS -lt $until ] || { echo "gave up after $PATIENCE s: $*"; last_lines "$service"; return 1; }
        sleep 0.5
    done
}

# sinfo lists a node once for each of its partitions.
nodes_are_up() { [ "$(in_login sinfo -h -N -o '%N %t' 2>&1 | sort -u | grep -cE ' (idle|mix|alloc)$')" = 2 ]; }
ssh_answers() { in_login nc -z login 22; }

wait_for_slurm() {
    wait_for login ssh_answers
    wait_for ctl nodes_are_up
}

portal_answers() {
    # Under its own name, so that the certificate is checked as a browser would check it.
    engine exec "$(container_of portal)" curl -fsS -o /dev/null --cacert /var/lib/slipway/tls/ca.crt \
        --connect-to "localhost:$PORT:127.0.0.1:8080" "$PUBLIC_URL/healthz"
}

second_portal_answers() {
    engine exec "$(container_of portal2)" curl -fsSk -o /dev/null "$SCHEME://127.0.0.1:8080/healthz"
}

port_is_taken() { (: < "/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }

wait_for_portal() {
    wait_for portal portal_answers
    wait_for portal port_is_taken
    [ "$HOSTS" != 2 ] || wait_for portal2 second_portal_answers
    keep_certificate
}

hub_answers() { engine exec "$(container_of hub)" curl -fsS -o /dev/null http://localhost:8000/hub/api/; }

wait_for_hub() {
    [ -z "$HUB" ] || wait_for hub hub_answers
}

# The authority's certificate, for browsers and for the tests.
keep_certificate() {
    rm -f "$PROJECT_DIR/ca.crt"
    [ -z "$HTTPS" ] || engine exec "$(container_of portal)" cat /var/lib/slipway/tls/ca.crt > "$PROJECT_DIR/ca.crt"
}

last_lines() { engine logs --tail 20 "$(container_of "$1")" 2>&1; }

print_welcome() {
    printf '\nSlipway is up: %s\n' "$PUBLIC_URL"
    [ -z "$HTTPS" ] || printf 'Browsers trust it once they trust this authority, which is valid for *.localhost only:\n    %s\n' \
        "$PROJECT_DIR/ca.crt"
    [ "$HOSTS" != 2 ] || printf 'The second portal host: %s\n' "$PUBLIC_URL2"
    [ -z "$HUB" ] || printf 'JupyterHub: http://localhost:%s\n' "$HUB_PORT"
    printf '\nDemo accounts:\n'
    awk -F: '{ printf "    %-8s password: %s\n", $1, substr($0, length($1) + 2) }' "$CLUSTER_PASSWORDS"
    [ "${IMAGES:-}" = all ] || printf '\nPython is there; other environments appear as soon as they are built. make images shows and waits.\n'
    printf '\nmake shell = a shell on the login node, make logs, make down\n'
}
