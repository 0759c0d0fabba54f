#!/usr/bin/env bash
# make down: stops the cluster and keeps its data.  make clean (--data): deletes the data, too.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
. "$here/start.sh"

remove_data() {
    local volume
    for volume in $(engine volume ls --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME"); do
        engine volume rm --force "$volume" >/dev/null
    done
    rm -rf "$PROJECT_DIR" "$CLUSTER_PASSWORDS"
}

become_root "$@"
choose_engine
command -v "$ENGINE" >/dev/null || fail "There is no container engine on this machine, so nothing is running."
remove_everything_but_data >/dev/null
rm -f "$PROJECT_DIR"/started-*
if [ "${1:-}" = --data ]; then
    remove_data
    echo "The cluster '$COMPOSE_PROJECT_NAME' and its data are deleted."
else
    echo "The cluster '$COMPOSE_PROJECT_NAME' is stopped; make up starts it again with its data."
fi
