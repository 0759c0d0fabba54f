#!/bin/bash
# Test a built environment: images/test.sh ENVIRONMENT/VERSION IMAGE_DIR
# Runs the recipe's test.sh inside IMAGE_DIR/image.sif, contained like a session.
set -euo pipefail

die() { echo "images/test.sh: $*" >&2; exit 1; }

[[ $# == 2 && $1 == */* ]] || die "usage: images/test.sh ENVIRONMENT/VERSION IMAGE_DIR"
here=$(cd "$(dirname "$0")" && pwd)
[[ -f $here/$1/test.sh ]] || die "no test images/$1/test.sh"
[[ -f $2/image.sif ]] || die "no image $2/image.sif"
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
echo "Testing $1"
apptainer --silent exec --containall --home "$home:/home/test" --pwd /home/test \
    --bind "$here/$1/test.sh:/test.sh:ro" --bind "$here/checks:/checks:ro" \
    --bind "$here/../apps:/apps:ro" --bind "$here/toolkit/jupyter:/opt/slipway/jupyter:ro" \
    "$2/image.sif" sh /test.sh || die "$1 does not work"
echo "$1 works"
