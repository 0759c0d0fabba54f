#!/usr/bin/env bash
# Run bench/proxy.py (its arguments pass through) in a container with HAProxy as the portal has it
# and the peers beside it, without any network but its own loopback.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../cluster" && pwd)
# shellcheck source-path=SCRIPTDIR/../cluster
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"

IMAGE=localhost/slipway-bench:$SLIPWAY_CLONE

# Not when the portal's code changes: that is mounted.
build_bench_image() {
    local print secrets=() name portal=localhost/slipway-portal:$SLIPWAY_CLONE
    print=$(fingerprint bench/Containerfile requirements.txt cluster/Containerfile cluster/build)
    [ "$(engine image inspect --format '{{index .Config.Labels "slipway.bench"}}' "$IMAGE" 2>/dev/null)" != "$print" ] || return 0
    image_exists "$portal" || fail "Run this first, for the portal's image: make up"
    collect_site
    for name in apt.conf ca.crt npmrc; do
        secrets+=(--secret "id=$name,src=$SITE_DIR/$name")
    done
    engine build "${secrets[@]}" --network=host --build-arg "PORTAL=$portal" --label "slipway.bench=$print" \
        --tag "$IMAGE" --file "$REPO_DIR/bench/Containerfile" "$REPO_DIR/bench" >&2
}

become_root "$@"
choose_engine
build_bench_image
engine run --rm --init --network=none --volume "$REPO_DIR:/repo:ro" "$IMAGE" python3 -m bench.proxy "$@"
