#!/bin/sh
# Copies third-party style sheets, scripts and fonts to portal/web/static/vendor, and bundles the editor and the viewers.
# Needs npm, and uses the registry that it is configured for.
set -eu
cd "$(dirname "$0")"
out=../static/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# "overrides" pins the canvas that pdf.js has for Node.js, and that nothing here uses.
cp package.json package-lock.json editor.js viewers.js "$work"
(cd "$work" && npm ci --ignore-scripts --no-audit --no-fund)
modules=$work/node_modules
rm -rf "$out.new"
mkdir -p "$out.new/fonts"
cp "$modules/bootstrap/dist/css/bootstrap.min.css" "$out.new/"
cp "$modules/bootstrap-icons/font/bootstrap-icons.min.css" "$out.new/"
cp "$modules/bootstrap-icons/font/fonts/bootstrap-icons.woff2" "$out.new/fonts/"
cp "$modules/htmx.org/dist/htmx.min.js" "$out.new/"
cp "$modules/idiomorph/dist/idiomorph-ext.min.js" "$out.new/"
cp "$modules/tus-js-client/dist/tus.min.js" "$out.new/"
cp "$modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2" "$out.new/fonts/inter.woff2"
# One file without names that depend on where it was built.
(cd "$work" && node_modules/.bin/esbuild editor.js --bundle --minify --format=iife --global-name=slipwayEditor \
    --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning --outfile=editor.min.js)
(cd "$work" && node_modules/.bin/esbuild viewers.js --bundle --minify --format=iife --global-name=slipwayLibraries \
    --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning --outfile=viewers.min.js)
cp "$work/editor.min.js" "$work/viewers.min.js" "$out.new/"
cp "$modules/pdfjs-dist/legacy/build/pdf.min.mjs" "$modules/pdfjs-dist/legacy/build/pdf.worker.min.mjs" "$out.new/"
# Only for the browser tests: `build.sh tests`.
[ "${1:-}" != tests ] || cp "$modules/axe-core/axe.min.js" "$out.new/"
# Source maps are not shipped, so browsers would request them in vain.
sed -i '/^\/\*# sourceMappingURL=/d' "$out.new"/*.css
sed -i '/^\/\/# sourceMappingURL=/d' "$out.new"/*.js "$out.new"/*.mjs
rm -rf "$out"
mv "$out.new" "$out"
