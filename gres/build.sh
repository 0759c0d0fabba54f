#!/bin/sh
# Build root's command for the compute nodes: one file that needs only Python 3.9.
#   gres/build.sh OUT      for example gres/build.sh /usr/sbin/slipway-gpu
# It contains the folders gpu and common of portal/node; builds are reproducible.
set -eu
[ $# -eq 1 ] || { echo "usage: gres/build.sh OUT" >&2; exit 2; }
source_dir=$(cd "$(dirname "$0")/.." && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/portal/node"
cp "$source_dir/portal/__init__.py" "$work/portal/"
(cd "$source_dir/portal/node" && cp -r __init__.py common gpu "$work/portal/node/")
find "$work" -name __pycache__ -prune -exec rm -rf {} +
printf 'import sys\nfrom portal.node.gpu.cli import main\nsys.exit(main())\n' > "$work/__main__.py"
find "$work" -exec touch -d '2000-01-01 00:00Z' {} +
python3 -m zipapp "$work" --output "$work.pyz" --python '/usr/bin/env -S python3 -IS' --compress
install -D -m 755 "$work.pyz" "$out"
rm -f "$work.pyz"
