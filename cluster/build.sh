# shellcheck shell=bash
# The images of the cluster: rebuilt only if their sources have changed.

image_exists() { engine image inspect "$1" >/dev/null 2>&1; }

# ensure_base SUITE — the base comes from a registry, or is built here under the same name if no registry is
# reachable.
ensure_base() {
    local suite=$1
    local image=debian:$suite-slim
    image_exists "$image" && return
    echo "fetching $image"
    engine pull --quiet "$image" 2>&1 && return
    echo "no registry is reachable: building $image with debootstrap"
    make_base "$suite" "$image"
}

make_base() {
    local suite=$1 image=$2 root mirror
    command -v debootstrap >/dev/null || apt_install debootstrap debian-archive-keyring
    root=$(mktemp -d /var/tmp/slipway-base.XXXXXX)
    mirror=$(cat "$SITE_DIR/mirror")
    debootstrap --variant=minbase "$suite" "$root/rootfs" ${mirror:+"$mirror"}
    find "$root/rootfs/dev" -mindepth 1 -delete
    rm -rf "$root/rootfs/var/cache/apt/archives" "$root/rootfs/var/lib/apt/lists"
    mkdir -p "$root/rootfs/var/lib/apt/lists/partial" "$root/rootfs/var/cache/apt/archives/partial" "$BASES_DIR"
    # The session images start from it as well.
    tar -C "$root/rootfs" -cf "$BASES_DIR/$suite.tar" .
    local uri
    uri=$(sed -nE 's/^deb +([^ ]+).*/\1/p' "$root/rootfs/etc/apt/sources.list" | head -n 1)
    rm -f "$root/rootfs/etc/apt/sources.list"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
        "$uri" "$suite" /usr/share/keyrings/debian-archive-keyring.gpg \
        > "$root/rootfs/etc/apt/sources.list.d/debian.sources"
    tar -C "$root/rootfs" -c . | engine import - "$image"
    rm -rf "$root"
}

inputs_of() { engine image inspect --format '{{index .Config.Labels "slipway.inputs"}}' "$1" 2>/dev/null; }

# build_image TARGET TAG INPUT… — the fingerprint of the inputs is stored as a label.
build_image() {
    local target=$1 tag=$2 print
    shift 2
    print=$(fingerprint "$@")-$SLURM
    if [ "$(inputs_of "$tag")" = "$print" ]; then
        echo "$tag is up to date"
        return
    fi
    echo "building $tag"
    local secrets=() name
    for name in apt.sources apt.conf ca.crt pip.conf npmrc; do
        secrets+=(--secret "id=$name,src=$SITE_DIR/$name")
    done
    local layers=()
    [ "$ENGINE" = docker ] || layers=(--layers)
    engine build "${layers[@]}" "${secrets[@]}" --network=host --build-arg "SLURM=$SLURM" --build-arg "HUB=${HUB:-6.1}" \
        --label "slipway.inputs=$print" --target "$target" --tag "$tag" \
        --file "$CLUSTER_DIR/Containerfile" "$REPO_DIR"
    # An image whose layers all exist already is taken as it is, with the label of an earlier build.
    [ "$(inputs_of "$tag")" = "$print" ] ||
        echo "FROM $tag" | engine build --label "slipway.inputs=$print" --tag "$tag" -
}

SLURM_INPUTS=(cluster/Containerfile cluster/build cluster/bin cluster/supervisor cluster/etc
    cluster/people slurm_plugins tests/standin gres/build.sh gres/shim/glibc_compat.h portal/__init__.py
    portal/node/__init__.py portal/node/common portal/node/gpu portal/node/batch portal/node/file_server)

# Toolkit and session images are built in it (software.sh).
build_builder_image() {
    build_image builder "localhost/slipway-builder:$SLIPWAY_CLONE" cluster/Containerfile cluster/build requirements.txt
}

build_assets_image() {
    build_image assets "localhost/slipway-assets:$SLIPWAY_CLONE" cluster/Containerfile cluster/build portal/web/client
}

build_cluster_images() {
    local target
    build_builder_image
    for target in ctl login node; do
        build_image "$target" "localhost/slipway-$target:$SLURM_TAG" "${SLURM_INPUTS[@]}"
    done
}

# Images that lost their tag to a newer one; those of running containers stay.
remove_old_images() { engine image prune --force --filter label=slipway.inputs >/dev/null; }

build_portal_image() {
    # Tagged, so that its layers survive remove_old_images and need not be rebuilt.
    build_assets_image
    [ "$HOSTS" != 2 ] || build_image database "localhost/slipway-database:$SLIPWAY_CLONE" cluster/Containerfile \
        cluster/build cluster/bin/start-database
    build_image portal "localhost/slipway-portal:$SLIPWAY_CLONE" cluster/Containerfile cluster/build \
        cluster/bin/start-portal cluster/supervisor/portal.conf cluster/etc/slipway.toml \
        pyproject.toml requirements.txt portal templates apps
}

build_hub_image() {
    build_image hub "localhost/slipway-hub:$HUB_TAG" cluster/Containerfile cluster/build cluster/hub \
        cluster/bin cluster/supervisor cluster/etc/slipway.toml pyproject.toml requirements.txt portal templates apps
}
