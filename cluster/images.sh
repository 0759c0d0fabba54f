#!/usr/bin/env bash
# make images: the recipes, and which of them are built; it waits for those that `make up` builds in the
# background. make images ALL=1 builds every one that can be built without a registry, those of `make up`
# first, and goes on if one fails. make test-images tests what is built, and names what it left out.
#   cluster/images.sh show | build | more | test | for-tests
# for-tests builds what tests use and no site offers, unless it is there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"
. "$here/software.sh"

wrong=()
# Held by whoever builds several images: all clusters of this clone share them.
LOCK=$CLUSTER_SOFTWARE/.images-lock
NOW=$CLUSTER_SOFTWARE/.image-now
BACKGROUND_LOG=$CLUSTER_SOFTWARE/images.log

every_recipe() { (cd "$REPO_DIR/images" && printf '%s\n' */*/image.def | sed 's|/image.def$||' | sort -V); }

# In the order of building: those of `make up` first.
in_order() {
    printf '%s\n' "$FIRST_IMAGE" "${MORE_IMAGES[@]}"
    every_recipe | grep -vxF -e "$FIRST_IMAGE" "${MORE_IMAGES[@]/#/--regexp=}"
}

# Those that start from a Debian release; the others need a registry.
buildable() { [ -s "$REPO_DIR/images/$1/base" ]; }

is_built() { [ -s "$CLUSTER_SOFTWARE/images/$1/image.sif" ]; }

in_background() { [ -e "$LOCK" ] && ! flock --nonblock "$LOCK" true; }

image_being_built() { ! in_background || cat "$NOW" 2>/dev/null || true; }

state_of() {
    if [ "$1" = "$(image_being_built)" ]; then
        echo "being built"
    elif is_built "$1"; then
        echo "built, $(du -hL "$CLUSTER_SOFTWARE/images/$1/image.sif" | cut -f 1)"
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
    if in_background; then
        echo "Waiting for those that are being built (Ctrl-C ends the waiting only)."
        tail -n +1 --follow --pid "$(cat "$LOCK")" "$BACKGROUND_LOG" 2>/dev/null
    fi
    ! grep FAILED "$BACKGROUND_LOG" 2>/dev/null
}

# Starts building the images that `make up` does not wait for, unless they are there, and returns.
more() {
    mkdir -p "$CLUSTER_SOFTWARE"
    setsid --fork "$here/images.sh" background < /dev/null > "$PROJECT_DIR/logs/images.log" 2>&1
}

# One run at a time: the next one finds them built.
background() {
    local recipe
    exec 9>> "$LOCK"
    flock 9
    echo "$$" > "$LOCK"
    : > "$BACKGROUND_LOG"
    for recipe in "${MORE_IMAGES[@]}"; do
        echo "$recipe" > "$NOW"
        attempt "$recipe" "building" build_session_image "$recipe" >> "$BACKGROUND_LOG" || true
    done
    rm -f "$NOW"
    conclude
}

prepare() {
    install_missing
    collect_site
    ensure_base trixie
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
    if in_background; then
        echo "Waiting for the images that make up builds in the background"
    fi
    exec 9>> "$LOCK"
    flock 9
    echo "$$" > "$LOCK"
    # For `make images` in another window.
    exec > >(tee "$BACKGROUND_LOG")
    echo "Preparing this machine"
    prepare > "$PROJECT_DIR/logs/images.log" 2>&1 || fail "This machine could not be prepared; the log: $PROJECT_DIR/logs/images.log"
    for recipe in $(in_order); do
        buildable "$recipe" || continue
        echo "$recipe" > "$NOW"
        : > "$PROJECT_DIR/logs/image-${recipe//\//-}.log"
        attempt "$recipe" "building" build_session_image "$recipe" || true
    done
    rm -f "$NOW"
    conclude
}

# One run at a time: the next one finds it built.
for_tests() {
    exec 9>> "$CLUSTER_SOFTWARE/.test-images-lock"
    flock 9
    collect_site
    build_test_image
}

test_all() {
    local recipe left=()
    for recipe in $(every_recipe); do
        if is_built "$recipe"; then
            attempt "$recipe" "testing" slipway_images test "$recipe" || true
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
        more) become_root "$@"; more ;;
        background) become_root "$@"; choose_engine; background ;;
        test) become_root "$@"; choose_engine; test_all ;;
        for-tests) become_root "$@"; choose_engine; for_tests ;;
        *) fail "usage: cluster/images.sh show | build | more | test | for-tests" ;;
    esac
}

main "$@"
