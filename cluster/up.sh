#!/usr/bin/env bash
# make up: installs, builds and starts what is missing, and reports its progress.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"
. "$here/software.sh"
. "$here/start.sh"

STEPS=9
[ "${IMAGES:-}" != all ] || STEPS=$((STEPS + 2))
[ -z "$HUB" ] || STEPS=$((STEPS + 2))
step_number=0

# step "Title" "What to do if it fails" FUNCTION…
step() {
    local title=$1 advice=$2 log started=$SECONDS
    shift 2
    step_number=$((step_number + 1))
    log=$PROJECT_DIR/logs/$step_number-$1.log
    printf '[%d/%d] %s … ' "$step_number" "$STEPS" "$title"
    # Not in an `if`, where the shell ignores set -e and a failed command in a step would go unnoticed.
    set +e
    (set -e; "$@") > "$log" 2>&1 < /dev/null
    local status=$?
    set -e
    if [ "$status" -eq 0 ]; then
        printf 'done (%d s)\n' $((SECONDS - started))
    else
        printf 'FAILED\n\n'
        { grep -i '^error' "$log" | tail -n 3 || true; echo ...; tail -n 20 "$log"; } | sed 's/^/    /'
        printf '\nThis step failed: %s\nWhat to do: %s\nThe whole log: %s\n' "$title" "$advice" "$log" >&2
        exit 1
    fi
}

main() {
    mkdir -p "$PROJECT_DIR/logs" "$CLUSTER_SOFTWARE"
    local network="check that this machine reaches its package mirrors, then run the same command again"
    step "Preparing this machine" "$network" prepare_machine
    step "Base image" "$network" ensure_base trixie
    step "Images of the cluster (Slurm $SLURM)" "$network" build_cluster_images
    step "Image of the portal" "$network" build_portal_image
    [ -z "$HUB" ] || step "Image of JupyterHub $HUB" "$network" build_hub_image
    step "Toolkit for sessions" "$network" build_toolkit
    step "Session image $FIRST_IMAGE" "$network" build_session_image "$FIRST_IMAGE"
    [ "${IMAGES:-}" != all ] || step "Session images ${MORE_IMAGES[*]}" "$network" build_more_images
    [ "${IMAGES:-}" != all ] || step "Programs that submit jobs, for tests" "$network" build_clients
    step "Starting the cluster" "make down, then make up; is port $PORT free? (PORT=9090 make up takes another)" start_cluster
    step "Waiting for Slurm" "see the daemons' logs: make logs" wait_for_slurm
    step "Waiting for the portal" "see the portal's log: make logs" wait_for_portal
    [ -z "$HUB" ] || step "Waiting for JupyterHub" "see its log: cluster/ctl.sh logs hub" wait_for_hub
    [ "${IMAGES:-}" = all ] || "$here/images.sh" more
    print_welcome
}

become_root "$@"
choose_engine
main
