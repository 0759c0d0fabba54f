#!/usr/bin/env bash
# make test-packages: what `make packages` left in dist/, tried in fresh containers. Needs root and a container engine.
#   run.sh [debian12] [debian13] [rpm] [wheel] [container] [ansible] [systemd] [guide]      by default, all
# guide follows install.md in front of a cluster of its own, at port $GUIDE_PORT.
# Not part of `make test`, since each takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source-path=SCRIPTDIR/../../cluster
. cluster/lib.sh
. cluster/site.sh
. cluster/install.sh
. cluster/build.sh

DIST=${DIST:-$REPO_DIR/dist}
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
passed=0

write_sources() {
    awk -v RS= -v ORS='\n\n' '/Suites: trixie/' "$SITE_DIR/apt.sources" | sed "s/trixie/$1/g" > "$SITE_DIR/apt.sources-$1"
}

# in_fresh SUITE SCRIPT ARGUMENT… — in a new container of the distribution, with this machine's mirrors.
in_fresh() {
    local suite=$1
    shift
    ensure_base "$suite"
    write_sources "$suite"
    engine run --rm --network="${NETWORK:-bridge}" --env DEBIAN_FRONTEND=noninteractive --env "VERSION=$VERSION" \
        --volume "$SITE_DIR:/run/site:ro" --volume "$DIST:/dist:ro" --volume "$REPO_DIR/tests/packages:/tests:ro" --volume "$REPO_DIR/deploy:/deploy:ro" \
        --volume "$REPO_DIR/cluster/build/with-site:/usr/local/bin/with-site:ro" \
        --env "SUITE=$suite" "debian:$suite-slim" bash "/tests/$1"
}

try_debian12() { in_fresh bookworm debian.sh; }
try_debian13() { in_fresh trixie debian.sh; }
try_rpm() { in_fresh bookworm rpm.sh; }
try_wheel() { in_fresh trixie wheel.sh; }
try_ansible() { in_fresh trixie ansible.sh; }
try_container() { ENGINE=$ENGINE IMAGE=localhost/slipway:$VERSION bash tests/packages/container.sh; }

try_systemd() {
    ensure_base bookworm
    write_sources bookworm
    ENGINE=$ENGINE DIST=$DIST VERSION=$VERSION SITE_DIR=$SITE_DIR bash tests/packages/systemd.sh
}

try_guide() (
    export COMPOSE_PROJECT_NAME=$GUIDE_PROJECT PORT=${GUIDE_PORT:-8291} DIST VERSION SITE_DIR
    ensure_base trixie
    write_sources trixie
    [ -n "${GUIDE_KEEP:-}" ] || trap 'cluster/down.sh --data > /dev/null 2>&1' EXIT
    cluster/up.sh
    bash tests/packages/guide.sh
)

become_root "$@"
choose_engine
GUIDE_PROJECT=${GUIDE_PROJECT:-slipway-guide}
collect_site
[ $# -gt 0 ] || set -- debian12 debian13 rpm wheel container ansible systemd guide
for part in "$@"; do
    started=$SECONDS
    printf '\n=== %s ===\n' "$part"
    "try_$part"
    printf '%s: passed (%d s)\n' "$part" $((SECONDS - started))
    passed=$((passed + 1))
done
printf '\n%d of %d passed\n' "$passed" "$#"
