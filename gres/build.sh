#!/bin/sh
# Build root's command for the compute nodes: one file that needs only Python 3.9.
#   gres/build.sh OUT      for example gres/build.sh /usr/sbin/slipway-gpu
# It contains portal/gpu and the one file of portal/core that converts units; builds are reproducible.
set -eu
[ $# -eq 1 ] || { echo "usage: gres/build.sh OUT" >&2; exit 2; }
source_dir=$(cd "$(dirname "$0")/.." && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/portal/core/cluster" "$work/portal/gpu"
# Empty: the portal's own ones would import Flask.
: > "$work/portal/__init__.py"
: > "$work/portal/core/__init__.py"
: > "$work/portal/core/cluster/__init__.py"
cp "$source_dir/portal/core/cluster/fgpu.py" "$work/portal/core/cluster/"
cp "$source_dir"/portal/gpu/*.py "$work/portal/gpu/"
for folder in checks health watchdog; do
    mkdir "$work/portal/gpu/$folder"
    cp "$source_dir/portal/gpu/$folder"/*.py "$work/portal/gpu/$folder/"
done
printf 'import sys\nfrom portal.gpu.cli import main\nsys.exit(main())\n' > "$work/__main__.py"
find "$work" -exec touch -d '2000-01-01 00:00Z' {} +
python3 -m zipapp "$work" --output "$work.pyz" --python '/usr/bin/env -S python3 -IS' --compress
install -D -m 755 "$work.pyz" "$out"
rm -f "$work.pyz"
