#!/usr/bin/env bash
# make image IMAGE=ENVIRONMENT/VERSION: builds an image of images/ for the cluster of `make up`, and runs
# its test. Sessions that run keep the image that they have; the portal shows the new one within seconds.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/lib.sh"
. "$here/site.sh"
. "$here/install.sh"
. "$here/build.sh"
. "$here/software.sh"

[ -n "${1:-}" ] || fail "Which one? For example: make image IMAGE=python/3.11"
become_root "$@"
choose_engine
collect_site
image_exists "localhost/slipway-builder:$SLIPWAY_CLONE" || fail "Run make up first: it builds what builds images."
build_session_image "$1"
slipway_images test "$1"
