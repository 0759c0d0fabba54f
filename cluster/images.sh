#!/usr/bin/env bash
# make images: the recipes, and which of them are built. make images ALL=1 builds every one that can be
# built without a registry, those of `make up` first, and goes on if one fails. make test-images tests what
# is built, and names what it left out.
#   cluster/images.sh show | build | test
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"
. "$here/software.sh"

wrong=()

every_recipe() { (cd "$REPO_DIR/images" && printf '%s\n' */*/image.def | sed 's|/image.def$||' | sort -V); }

# In the order of building: those of `make up` first.
in_order() {
    printf '%s\n' "$FIRST_IMAGE" "${MORE_IMAGES[@]}"
    every_recipe | grep -vxF -e "$FIRST_IMAGE" "${MORE_IMAGES[@]/#/--regexp=}"
}

# Those that start from a Debian release; the others need a registry.
buildable() { [ -s "$REPO_DIR/images/$1/base" ]; }

is_built() { [ -s "$CLUSTER_SOFTWARE/images/$1/image.sif" ]; }

state_of() {
    if is_built "$1"; then
        echo "built, $(du -h "$CLUSTER_SOFTWARE/images/$1/image.sif" | cut -f 1)"
    elif buildable "$1"; then
        echo "not built"
    else
        echo "not built here: it starts from an image in a registry"
    fi
}

show() {
    local recipe
    for recipe in $(every_recipe); do
        printf '%-20s %s\n' "$recipe" "$(state_of "$recipe")"
    done
    echo
    echo "make up builds: $FIRST_IMAGE ${MORE_IMAGES[*]}. make images ALL=1 builds all."
}

prepare() {
    install_missing
    collect_site
    ensure_base
    build_image builder "localhost/slipway-builder:$SLIPWAY_CLONE" cluster/Containerfile cluster/build
}

# attempt RECIPE WHAT COMMAND…: its output goes to a log; a failure is remembered.
attempt() {
    local recipe=$1 what=$2 log=$PROJECT_DIR/logs/image-${1//\//-}.log begun=$SECONDS
    shift 2
    printf '%-20s %s … ' "$recipe" "$what"
    # Not in an `if`, where the shell ignores set -e in the functions called.
    set +e
    (set -e; "$@") >> "$log" 2>&1 < /dev/null
    local status=$?
    set -e
    if [ "$status" -eq 0 ]; then
        echo "done ($((SECONDS - begun)) s)"
    else
        echo "FAILED; the log: $log"
        wrong+=("$recipe ($what)")
    fi
    return "$status"
}

build_all() {
    local recipe
    mkdir -p "$PROJECT_DIR/logs" "$CLUSTER_SOFTWARE"
    echo "Preparing this machine"
    prepare > "$PROJECT_DIR/logs/images.log" 2>&1 || fail "This machine could not be prepared; the log: $PROJECT_DIR/logs/images.log"
    for recipe in $(in_order); do
        buildable "$recipe" || continue
        : > "$PROJECT_DIR/logs/image-${recipe//\//-}.log"
        attempt "$recipe" "building" build_session_image "$recipe" || true
    done
    conclude
}

# As a user without privileges, as sessions run.
test_in_builder() {
    # shellcheck disable=SC2016  # $1 is the inner shell's
    in_builder bash -c 'useradd --create-home tester && chmod 666 /dev/fuse &&
        exec setpriv --reuid tester --regid tester --clear-groups env HOME=/home/tester bash images/test.sh "$1" "/out/images/$1"' \
        test-image "$1"
}

test_all() {
    local recipe left=()
    for recipe in $(every_recipe); do
        if is_built "$recipe"; then
            attempt "$recipe" "testing" test_in_builder "$recipe" || true
        else
            left+=("$recipe ($(state_of "$recipe"))")
        fi
    done
    [ ${#left[@]} -eq 0 ] || printf 'Left out: %s\n' "${left[@]}"
    conclude
}

conclude() {
    [ ${#wrong[@]} -eq 0 ] || fail "" "These failed:" "${wrong[@]}"
}

main() {
    case ${1:-show} in
        show) show ;;
        build) become_root "$@"; choose_engine; build_all ;;
        test) become_root "$@"; choose_engine; test_all ;;
        *) fail "usage: cluster/images.sh show | build | test" ;;
    esac
}

main "$@"
