#!/usr/bin/env bash
# make packages: everything of a release, in dist/, with SHA256SUMS. Needs root, and a container engine like
# `make up`; no cluster has to run.
#   build.sh            everything
#   build.sh PART…      some of: wheel debian12 debian13 rpm container tools toolkit
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
# shellcheck source-path=SCRIPTDIR/../../cluster
. cluster/lib.sh
. cluster/site.sh
. cluster/install.sh
. cluster/build.sh
. cluster/software.sh

DIST=${DIST:-$REPO_DIR/dist}
ALL_PARTS=(wheel debian12 debian13 rpm container tools toolkit)
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
ACCOUNTS='procps, systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles'

in_git() { git -c safe.directory="$REPO_DIR" "$@"; }

# What is recorded of the commit; a tree without git has the date of the first release.
describe_commit() {
    SOURCE_DATE_EPOCH=$(in_git log -1 --format=%ct 2> /dev/null || echo 1735689600)
    SLIPWAY_REVISION=${SLIPWAY_REVISION:-$(in_git describe --always --dirty=+ --abbrev=12 --exclude='*' 2> /dev/null || true)}
    export SOURCE_DATE_EPOCH SLIPWAY_REVISION
}

# The files of the repository and the browser libraries, in a folder for the containers.
copy_source() {
    local container
    mkdir "$work/source"
    { in_git ls-files -z --cached --others --exclude-standard 2> /dev/null || find . -type f -not -path './.git/*' -print0; } |
        tar --null --no-recursion --ignore-failed-read -cf - -T - | tar -C "$work/source" -xf -
    build_assets_image
    container=$(engine create "localhost/slipway-assets:$SLIPWAY_CLONE" true)
    engine cp "$container:/src/portal/web/static/built" "$work/source/portal/web/static/built"
    engine rm "$container" > /dev/null
}

# The mirrors of one suite; use-site-sources would add sid.
write_suite_sources() {
    awk -v RS= -v ORS='\n\n' '/Suites: trixie/' "$SITE_DIR/apt.sources" | sed "s/trixie/$1/g" > "$work/apt.sources-$1"
}

# build_target TARGET SUITE TAG [CONTEXT]
build_target() {
    local secrets=(--secret "id=apt.sources,src=$work/apt.sources-$2") name layers=()
    for name in apt.conf ca.crt pip.conf; do secrets+=(--secret "id=$name,src=$SITE_DIR/$name"); done
    [ "$ENGINE" = docker ] || layers=(--layers)
    engine build "${layers[@]}" "${secrets[@]}" --network=host --build-arg "BASE=debian:$2-slim" --target "$1" \
        --label slipway.inputs=packages --tag "$3" --file "$here/Containerfile" "${4:-$REPO_DIR}"
}

# in_image IMAGE COMMAND… — without a network: everything is there.
in_image() {
    local image=$1
    shift
    engine run --rm --network=none --volume "$work:/work" --env SOURCE_DATE_EPOCH --env SLIPWAY_REVISION \
        "$image" "$@"
}

builder_of() { echo "localhost/slipway-packages-$1:$SLIPWAY_CLONE"; }

need_builder() {
    [ -z "${built[$1]:-}" ] || return 0
    ensure_base "$1"
    write_suite_sources "$1"
    build_target builder "$1" "$(builder_of "$1")"
    built[$1]=yes
}

need_wheel() {
    [ ! -e "$work/wheel" ] || return 0
    need_builder trixie
    copy_source
    in_image "$(builder_of trixie)" sh /work/source/deploy/packages/wheel.sh /work/source /work/wheel
}

# The HAProxy of Debian 13, for those whose own is older than 3.0.
need_haproxy() {
    [ ! -e "$work/haproxy" ] || return 0
    need_builder trixie
    build_target haproxy trixie "$(builder_of haproxy)"
    in_image "$(builder_of haproxy)" cp -r /usr/lib/slipway/haproxy /work/haproxy
}

# need_tree SUITE [HAPROXY]
need_tree() {
    [ ! -e "$work/tree-$1" ] || return 0
    need_wheel
    need_builder "$1"
    in_image "$(builder_of "$1")" bash /work/source/deploy/packages/tree.sh /work/source \
        "/work/wheel/$(basename "$work"/wheel/*.whl)" "/work/tree-$1" "${@:2}"
}

# The wheel, and one file by which pip installs it and all that it needs, each with its hash.
build_wheel() {
    local wheel
    need_wheel
    cp "$work"/wheel/*.whl "$DIST/"
    wheel=$(basename "$work"/wheel/*.whl)
    { echo "# pip install --require-hashes --find-links FOLDER -r this file, in the folder of $wheel"
      grep -v '^#' requirements.txt
      printf 'slipway==%s \\\n    --hash=sha256:%s\n' "$VERSION" "$(sha256sum "$DIST/$wheel" | cut -d' ' -f1)"
    } > "$DIST/slipway-$VERSION-requirements.txt"
}

build_debian12() {
    need_haproxy
    need_tree bookworm /work/haproxy
    in_image "$(builder_of bookworm)" bash /work/source/deploy/packages/debian.sh /work/source /work/tree-bookworm \
        "$VERSION-1+deb12" /work/out "python3.11, $ACCOUNTS"
    cp "$work"/out/*deb12*.deb "$DIST/"
}

build_debian13() {
    need_tree trixie
    in_image "$(builder_of trixie)" bash /work/source/deploy/packages/debian.sh /work/source /work/tree-trixie \
        "$VERSION-1+deb13" /work/out "python3.13, haproxy (>= 3.0), $ACCOUNTS"
    cp "$work"/out/*deb13*.deb "$DIST/"
}

# Of the tree of Debian 12: its Python packages are built for any Linux, and RHEL 9 has Python 3.11 as well.
build_rpm() {
    need_haproxy
    need_tree bookworm /work/haproxy
    in_image "$(builder_of bookworm)" bash /work/source/deploy/packages/rpm.sh /work/source /work/tree-bookworm \
        "$VERSION" /work/out 3.11
    cp "$work"/out/*.rpm "$DIST/"
}

build_container() {
    local tag=localhost/slipway:$VERSION context=$work/context
    compgen -G "$work/out/*deb13*.deb" > /dev/null || build_debian13
    mkdir -p "$context/package"
    cp "$work"/out/*deb13*.deb "$context/package/"
    (cd "$work/source" && tar -cf - cluster/build deploy/packages) | tar -C "$context" -xf -
    build_target portal trixie "$tag" "$context"
    engine save "$tag" | gzip -1n > "$DIST/slipway-$VERSION-container.tar.gz"
}

# What login and compute nodes need; any Python from 3.9 on runs the two commands.
build_tools() {
    need_wheel
    in_image "$(builder_of trixie)" sh -c 'sh /work/source/portal/node/batch/build.sh /work/out/slipway &&
        sh /work/source/gres/build.sh /work/out/slipway-gpu'
    cp "$work/out/slipway" "$DIST/slipway-$VERSION-login"
    cp "$work/out/slipway-gpu" "$DIST/slipway-$VERSION-gpu"
    # Compiled on the site, against its Slurm.
    tar -C "$work/source" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=go-w \
        --transform "s,^,slipway-$VERSION-slurm/," -cf - slurm_plugins gres portal/__init__.py portal/node/__init__.py portal/node/common portal/node/gpu |
        gzip -9n > "$DIST/slipway-$VERSION-slurm.tar.gz"
}

build_release_toolkit() {
    build_builder_image
    build_toolkit
    cp "$CLUSTER_SOFTWARE/toolkit.sqsh" "$DIST/slipway-$VERSION-toolkit-$(uname -m).sqsh"
}

main() {
    local part parts=("$@")
    [ ${#parts[@]} -gt 0 ] || parts=("${ALL_PARTS[@]}")
    for part in "${parts[@]}"; do
        [[ " ${ALL_PARTS[*]} " == *" $part "* ]] || fail "build.sh: no part $part (${ALL_PARTS[*]})"
    done
    install_missing
    collect_site
    describe_commit
    mkdir -p "$DIST" "$work/out"
    [ $# -gt 0 ] || rm -f "$DIST"/slipway[-_]*
    for part in "${parts[@]}"; do
        echo "building: $part"
        if [ "$part" = toolkit ]; then part=release_toolkit; fi
        "build_$part"
    done
    remove_old_images
    (cd "$DIST" && rm -f SHA256SUMS && sha256sum slipway[-_]* > SHA256SUMS)
    [ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID" "$DIST"
    ls -l "$DIST"
}

become_root "$@"
choose_engine
declare -A built=()
work=$(mktemp -d /var/tmp/slipway-packages.XXXXXX)
trap 'rm -rf "$work"' EXIT
main "$@"
