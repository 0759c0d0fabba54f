#!/bin/sh
# Bundles the pages' scripts and style sheets, with the libraries that they use, to portal/web/static/built.
# Needs npm, and uses the registry that it is configured for.
#   build.sh            builds, unless what is there is of these sources
#   build.sh tests      the same, with what the browser tests need
#   build.sh packages   only installs the packages, if the lock file has changed
set -eu
cd "$(dirname "$0")"
out=../static/built
stamp=node_modules/.slipway
locked=$(sha256sum package.json package-lock.json)
if [ "$(cat "$stamp" 2> /dev/null)" != "$locked" ]; then
    # "overrides" pins the canvas that pdf.js has for Node.js, and that nothing here uses.
    npm ci --ignore-scripts --no-audit --no-fund
    echo "$locked" > "$stamp"
fi
[ "${1:-}" != packages ] || exit 0
sources=$({ find . -name node_modules -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum; echo "${1:-}"; } | sha256sum)
[ "$(cat "$out/sources" 2> /dev/null)" != "$sources" ] || exit 0
rm -rf "$out.new"
mkdir -p "$out.new"
node build.mjs "$out.new" ${1:+"$1"}
echo "$sources" > "$out.new/sources"
rm -rf "$out"
mv "$out.new" "$out"
