#!/bin/bash
# Build the toolkit twice and compare: builds must be reproducible.
# Has the same requirements as build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /var/tmp/slipway-same.XXXXXX)
trap 'rm -rf "$work"' EXIT
for which in one two; do
    bash "$here/build.sh" "$work/$which.sqsh" > "$work/log" || { cat "$work/log" >&2; exit 1; }
done
if cmp "$work/one.sqsh" "$work/two.sqsh"; then
    echo "The same both times: $(sha256sum < "$work/one.sqsh" | cut -d ' ' -f 1)"
else
    echo "images/toolkit/same.sh: two builds differ" >&2
    exit 1
fi
