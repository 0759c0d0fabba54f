#!/usr/bin/env bash
# The peer of bench/hub.py: JupyterHub with batchspawner in a container beside the cluster of `make hub`.
#
#   bench/hub.sh start          builds what is missing, starts it, and prints its address
#   bench/hub.sh exec COMMAND…  runs a command in it
#   bench/hub.sh logs|stop
#
# COMPOSE_PROJECT_NAME chooses the cluster, as for all scripts of the cluster.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../cluster" && pwd)
# shellcheck source-path=SCRIPTDIR/../cluster
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"
. "$here/start.sh"

IMAGE=localhost/slipway-batchspawner:$SLIPWAY_CLONE
NAME=${COMPOSE_PROJECT_NAME}_batchspawner

# The images that it is made of may be newer than it is.
build_peer() {
    local print secrets=() name login=localhost/slipway-login:$SLURM_TAG hub
    # The version that runs.
    hub=$(engine container inspect --format '{{.Config.Image}}' "$(container_of hub)")
    { image_exists "$hub" && image_exists "$login"; } || fail "Run this first, for its images: make hub"
    print=$(fingerprint bench/peer)-$(engine image inspect --format '{{.Id}}' "$login" "$hub" | sha256sum | cut -c1-16)
    [ "$(engine image inspect --format '{{index .Config.Labels "slipway.bench"}}' "$IMAGE" 2>/dev/null)" != "$print" ] || return 0
    collect_site
    for name in apt.conf ca.crt pip.conf; do
        secrets+=(--secret "id=$name,src=$SITE_DIR/$name")
    done
    engine build "${secrets[@]}" --network=host --build-arg "LOGIN=$login" --build-arg "HUB=$hub" \
        --label "slipway.bench=$print" --tag "$IMAGE" \
        --file "$REPO_DIR/bench/peer/Containerfile" "$REPO_DIR/bench/peer" >&2
}

peer_answers() { engine exec "$NAME" curl -fs -o /dev/null http://localhost:8000/hub/api/; }

start_peer() {
    local hosts=() host
    export_network
    for host in ctl:10 login:11 n1:21 n2:22 portal:30 hub:40; do
        hosts+=(--add-host "${host%:*}:$CLUSTER_NET.${host#*:}")
    done
    stop_peer
    engine run --detach --rm --name "$NAME" --hostname batchspawner "${hosts[@]}" \
        --network "${COMPOSE_PROJECT_NAME}_cluster" --ip "$CLUSTER_NET.41" \
        --volume "${COMPOSE_PROJECT_NAME}_keys:/run/cluster-keys:ro" \
        --volume "${COMPOSE_PROJECT_NAME}_home:/home" \
        --volume "$CLUSTER_PASSWORDS:/run/demo-passwords:ro" "$IMAGE" >/dev/null
    wait_for 60 peer_answers >&2 || { engine logs --tail 20 "$NAME" >&2; stop_peer; return 1; }
    echo "$CLUSTER_NET.41"
}

stop_peer() { engine rm --force --time 3 "$NAME" >/dev/null 2>&1 || true; }

become_root "$@"
choose_engine
case ${1:-} in
    start) [ -n "$(container_of hub)" ] || fail "Run this first: make hub"; build_peer; start_peer ;;
    exec) shift; engine exec "$NAME" "$@" ;;
    logs) engine logs "$NAME" 2>&1 ;;
    stop) stop_peer ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
