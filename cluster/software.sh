# shellcheck shell=bash
# The software of sessions: the toolkit and the images. Built with Apptainer in the builder image, the
# same for every Slurm version, stored in cluster/.cache/software and mounted into every cluster of this
# clone as /srv/slipway.

# shellcheck disable=SC2034  # used in up.sh
FIRST_IMAGE=python/3.13
MORE_IMAGES=(python/3.11 debian/13 debian/12 busybox/1.37 blackbox/0.70)

# More options of the engine's `run`; later ones win.
BUILDER_OPTIONS=()

in_builder() {
    mkdir -p "$BASES_DIR"
    engine run --rm --privileged --network=host \
        --volume "$REPO_DIR:/repo:ro" --volume "$CLUSTER_SOFTWARE:/out" --volume "$SITE_DIR:/run/site:ro" \
        --volume "$BASES_DIR:/bases" --env SLIPWAY_BASES=/bases \
        --env http_proxy --env https_proxy --env no_proxy \
        --workdir /repo "${BUILDER_OPTIONS[@]}" "localhost/slipway-builder:$SLIPWAY_CLONE" with-site "$@"
}

# Builds only if the fingerprint of the sources has changed; usage: build_once NAME "SOURCES" COMMAND…
build_once() {
    local name=$1 sources=$2 stamp print
    shift 2
    stamp=$CLUSTER_SOFTWARE/.stamps/${name//\//-}
    # shellcheck disable=SC2086  # a list of paths
    print=$(fingerprint $sources)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$print" ]; then
        echo "$name is up to date"
        return
    fi
    in_builder "$@"
    mkdir -p "$CLUSTER_SOFTWARE/.stamps"
    echo "$print" > "$stamp"
}

build_toolkit() {
    build_once toolkit "images/toolkit portal/node/runner gres/shim" \
        bash images/toolkit/build.sh /out/toolkit.sqsh
}

# Programs that submit jobs (submitit, snakemake, Dask), for tests.
build_clients() {
    build_once clients "cluster/clients" bash cluster/clients/build.sh /out/clients
}

slipway_images() { in_builder python -m portal.cli images "$@" --images /out/images; }

build_session_image() { slipway_images build "$1" --if-changed; }

# For tests/slurm/test_foreign_apps.py, in a folder of its own: no cluster offers it otherwise.
build_test_image() {
    in_builder python -m portal.cli images build foreign/1 --if-changed \
        --recipes /repo/tests/slurm/recipes --images /out/test-images
}

# All but the first, which `make up` builds in a separate step.
build_more_images() {
    local image
    for image in "${MORE_IMAGES[@]}"; do
        build_session_image "$image"
    done
}
