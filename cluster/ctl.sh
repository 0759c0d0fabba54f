#!/usr/bin/env bash
# Small commands for a running cluster; hides the engine and the project's name.
#
#   cluster/ctl.sh exec [-t] [--user NAME] SERVICE -- COMMAND…   run a command in a service
#   cluster/ctl.sh start|stop|restart|kill SERVICE…              the whole container
#   cluster/ctl.sh daemon start|stop|restart|kill|reload SERVICE NAME   one daemon in it (kill = SIGKILL)
#   cluster/ctl.sh network SERVICE -- COMMAND…                   run a command of this machine in a service's network
#   cluster/ctl.sh put SERVICE PATH                              write standard input to a file there
#   cluster/ctl.sh images ACTION…                                `slipway images`: list, retire, prune, build, test, show
#   cluster/ctl.sh logs [-f] [SERVICE…]     cluster/ctl.sh ps     cluster/ctl.sh address SERVICE
#   cluster/ctl.sh projects                                       all compose projects of this machine
#
# `images` reads definitions and recipes relative to the current folder. All clusters of a clone share the
# images, and `prune` knows the sessions and jobs of one cluster only.
# Services: ctl login n1 n2 portal, with HOSTS=2 also portal2 database. COMPOSE_PROJECT_NAME chooses the cluster (default: slipway).
# shellcheck disable=SC2016  # the sh -c pieces are expanded in the container
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

need_container() {
    local id
    id=$(container_of "$1")
    [ -n "$id" ] || fail "There is no service '$1' in cluster '$COMPOSE_PROJECT_NAME'. Start it with: make up"
    echo "$id"
}

exec_in() {
    local options=(--interactive) user="" service
    while :; do
        case ${1:-} in
            -t) options+=(--tty); shift ;;
            --user) user=$2; shift 2 ;;
            *) break ;;
        esac
    done
    service=${1:?which service?}
    shift
    [ "${1:-}" != -- ] || shift
    # Not the engine's --user: that leaves HOME and the supplementary groups as they are for root.
    [ -z "$user" ] || set -- runuser --user "$user" -- env "HOME=/home/$user" "USER=$user" "LOGNAME=$user" \
        "SHELL=/bin/bash" sh -c 'cd && exec "$@"' sh "$@"
    engine exec "${options[@]}" "$(need_container "$service")" "$@"
}

# Settings of the kernel belong to a network, and few containers may write those of their own.
in_network_of() {
    local pid
    pid=$(engine inspect --format '{{.State.Pid}}' "$(need_container "${1:?which service?}")")
    shift
    [ "${1:-}" != -- ] || shift
    nsenter --net --target "$pid" -- "$@"
}

daemon() {
    local action=$1 container
    container=$(need_container "$2")
    case $action in
        kill) engine exec "$container" sh -c 'kill -9 "$(supervisorctl pid "$1")"' sh "$3" ;;
        reload) engine exec "$container" supervisorctl signal USR2 "$3" ;;
        start | stop | restart | status) engine exec "$container" supervisorctl "$action" "$3" ;;
        *) usage ;;
    esac
}

on_containers() {
    local action=$1 service
    shift
    for service in "$@"; do
        case $action in
            start | restart) start_container "$action" "$(need_container "$service")" ;;
            *) engine "$action" "$(need_container "$service")" >/dev/null ;;
        esac
    done
}

# start_container start|restart CONTAINER: restarting the portal on a busy machine has left its container
# stopped, once.
start_container() {
    local attempt
    engine "$1" "$2" >/dev/null && return
    for attempt in 1 2 3; do
        echo "$1 of $2 failed; attempt $attempt to start it" >&2
        sleep 2
        engine start "$2" >/dev/null && return
    done
    return 1
}

show_logs() {
    local follow=() service
    [ "${1:-}" != -f ] || { follow=(--follow); shift; }
    [ $# -gt 0 ] || set -- "${SERVICES[@]}"
    for service in "$@"; do
        engine logs "${follow[@]}" "$(need_container "$service")" 2>&1 | sed -u "s/^/$service | /" &
    done
    wait
}

address_of() {
    engine inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$(need_container "$1")"
}

# Each command runs where it finds what it needs: the portal's database, which says who uses what, or
# Apptainer. In the portal's container root alone may write images.
images() {
    case ${1:-} in
        list | retire | prune) exec_in portal -- slipway images "$@" ;;
        build | test | show) in_builder_here "$@" ;;
        *) usage ;;
    esac
}

in_builder_here() {
    local part action=$1
    shift
    for part in site install build software; do
        # shellcheck source=/dev/null
        . "$CLUSTER_DIR/$part.sh"
    done
    collect_site
    image_exists "localhost/slipway-builder:$SLIPWAY_CLONE" || fail "Run make up first: it builds what builds images."
    # shellcheck disable=SC2034  # for in_builder
    BUILDER_OPTIONS=(--volume "$PWD:/here:ro" --workdir /here --env PYTHONPATH=/repo --env APPTAINER_NOHTTPS
        --env APPTAINER_DOCKER_USERNAME --env APPTAINER_DOCKER_PASSWORD)
    slipway_images "$action" --recipes /repo/images "$@"
}

# All projects of which containers, volumes or a network exist.
projects() {
    local label='"com.docker.compose.project"'
    command -v "$ENGINE" >/dev/null || return 0
    {
        engine ps --all --quiet | xargs -r "$ENGINE" inspect --format "{{index .Config.Labels $label}}"
        engine volume ls --quiet | xargs -r "$ENGINE" volume inspect --format "{{index .Labels $label}}"
        engine network ls --format '{{.Name}}' | sed -n 's/_cluster$//p'
    } | grep -vxF -e '' -e '<no value>' | sort -u
}

main() {
    local action=${1:-}
    [ -n "$action" ] || usage
    shift
    case $action in
        exec) exec_in "$@" ;;
        network) in_network_of "$@" ;;
        daemon) [ $# -eq 3 ] || usage; daemon "$@" ;;
        put) exec_in "$1" -- sh -c 'cat > "$1"' sh "$2" ;;
        start | stop | restart | kill) on_containers "$action" "$@" ;;
        images) images "$@" ;;
        logs) show_logs "$@" ;;
        address) address_of "$1" ;;
        projects) projects ;;
        ps) engine ps --all --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" ;;
        *) usage ;;
    esac
}

become_root "$@"
choose_engine
main "$@"
