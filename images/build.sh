#!/bin/bash
# Build one environment: images/build.sh ENVIRONMENT/VERSION OUT_DIR [NAME=VALUE…]
# NAME=VALUE are arguments of the recipe (its %arguments), like variant=gpu.
# Leaves OUT_DIR/image.sif and OUT_DIR/image.toml. Run as root on Debian with Apptainer, debootstrap
# and `root:100000:65536` in /etc/subuid and /etc/subgid (the embedded cluster's node has them).
# Optional settings from the machine:
#   /run/site/mirror, /run/site/apt.conf, $PIP_CONFIG_FILE, $SITE_CA (a CA bundle for pip and apt),
#   $SLIPWAY_BASES (a folder that caches base systems for a day),
#   $SLIPWAY_COMPRESSION (mksquashfs options, see DECISIONS.md)
set -euo pipefail

die() { echo "images/build.sh: $*" >&2; exit 1; }

[[ $# -ge 2 && $1 == */* ]] || die "usage: images/build.sh ENVIRONMENT/VERSION OUT_DIR [NAME=VALUE…]"
arguments=()
for argument in "${@:3}"; do
    [[ $argument == [a-z]*=* ]] || die "$argument is not of the form NAME=VALUE"
    arguments+=(--build-arg "$argument")
done
recipe=$(cd "$(dirname "$0")/$1" 2>/dev/null && pwd) || die "no recipe images/$1"
suite=$(cat "$recipe/base" 2>/dev/null || true)
[[ $suite =~ ^[a-z]+$ ]] || die "images/$1/base must name the Debian release to start from, like trixie"
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d /var/tmp/slipway-image.XXXXXX)
trap 'rm -rf "$work"' EXIT
bases=${SLIPWAY_BASES:-$work}
# The machine's own mirror; without one, debootstrap's default.
mirror=$(head -n 1 /run/site/mirror 2>/dev/null || true)

# The base system of a release; cached for a day, for all images that start from it.
bootstrap() {
    local root=$work/bare
    [[ -z $(find "$bases/$suite.tar" -mmin -1440 2>/dev/null) ]] || return 0
    debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} > "$work/debootstrap.log" 2>&1 ||
        { tail -n 20 "$work/debootstrap.log" >&2; die "debootstrap failed"; }
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    mkdir -p "$bases"
    tar -C "$root" -cf "$work/base.tar" .
    mv "$work/base.tar" "$bases/$suite.tar"
    rm -rf "$root"
}

make_base() {
    local root=$1
    bootstrap
    mkdir "$root"
    tar -C "$root" -xf "$bases/$suite.tar"
    # An unprivileged build cannot copy device nodes, and Apptainer provides its own /dev.
    rm -rf "${root:?}"/dev/*
    printf 'path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' \
        > "$root/etc/dpkg/dpkg.cfg.d/slim"
}

# Only for the build: finish_image removes all of it again.
lend_site_settings() {
    local root=$1
    cp -r "$root/etc/apt" "$work/apt.original"
    if [[ -n $mirror ]]; then
        rm -f "$root/etc/apt/sources.list"
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
            "$mirror" "$suite $suite-updates" /usr/share/keyrings/debian-archive-keyring.gpg \
            "${mirror%/}-security" "$suite-security" /usr/share/keyrings/debian-archive-keyring.gpg \
            > "$root/etc/apt/sources.list.d/site.sources"
    fi
    if [[ -s /run/site/apt.conf ]]; then
        cp /run/site/apt.conf "$root/etc/apt/apt.conf.d/90site"
    fi
    if [[ -s ${PIP_CONFIG_FILE:-} ]]; then
        cp "$PIP_CONFIG_FILE" "$root/etc/pip.conf"
    fi
    if [[ -s ${SITE_CA:-} ]]; then
        install -D "$SITE_CA" "$root$SITE_CA"
    fi
}

build_sandbox() {
    # The environment reaches %post only through APPTAINERENV_ variables.
    local name
    for name in http_proxy https_proxy no_proxy; do
        if [[ -n ${!name:-} ]]; then export "APPTAINERENV_$name=${!name}"; fi
    done
    if [[ -s ${SITE_CA:-} ]]; then
        export APPTAINERENV_PIP_CERT=$SITE_CA APPTAINERENV_SSL_CERT_FILE=$SITE_CA
    fi
    export APPTAINER_TMPDIR=$work APPTAINER_CACHEDIR=$work/cache
    # A recipe uses those of the arguments that it needs.
    apptainer build --fakeroot --sandbox --warn-unused-build-args \
        --build-arg "base=$work/base" --build-arg "recipe=$recipe" "${arguments[@]}" \
        "$work/image" "$recipe/image.def"
}

finish_image() {
    local root=$1
    rm -rf "$root/etc/apt" "$root/etc/pip.conf" "$root/run/site" \
        "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/tmp/* "$root"/var/tmp/* "$root"/var/log/*
    cp -r "$work/apt.original" "$root/etc/apt"
    mkdir -p "$root/var/lib/apt/lists/partial" "$root/var/cache/apt/archives/partial"
}

echo "Base: Debian $suite"
make_base "$work/base"
lend_site_settings "$work/base"
echo "Recipe: images/$1"
build_sandbox
finish_image "$work/image"
echo "Packing"
apptainer build --fakeroot --mksquashfs-args "${SLIPWAY_COMPRESSION:--comp zstd -Xcompression-level 9 -b 64K}" \
    "$work/image.sif" "$work/image"
cp "$work/image.sif" "$out/image.sif.tmp"
chmod 644 "$out/image.sif.tmp"
mv "$out/image.sif.tmp" "$out/image.sif"
install -m 644 "$recipe/image.toml" "$out/image.toml"
echo "Built $out/image.sif ($(du -h "$out/image.sif" | cut -f 1))"
