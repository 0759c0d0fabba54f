#!/bin/sh
# Build the command for login and compute nodes: one file that needs only Python 3.9.
#   portal/node/batch/build.sh OUT      for example portal/node/batch/build.sh /usr/local/bin/slipway
# It contains the folders batch, file_server and common of portal/node; builds are reproducible.
# PYTHON names the interpreter if it is not /usr/bin/python3.
set -eu
[ $# -eq 1 ] || { echo "usage: portal/node/batch/build.sh OUT" >&2; exit 2; }
source_dir=$(cd "$(dirname "$0")/../../.." && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/files/portal/node"
cp "$source_dir/portal/__init__.py" "$work/files/portal/"
(cd "$source_dir/portal/node" && cp -r __init__.py common batch file_server "$work/files/portal/node/")
find "$work/files" -name __pycache__ -prune -exec rm -rf {} +
rm -r "$work/files/portal/node/batch/build.sh" "$work/files/portal/node/batch/doc"
printf 'from portal.node.batch.main import main\nmain()\n' > "$work/files/__main__.py"
# Compiled as well: that is most of what there is to do before sbatch runs. Another version of Python
# than the one that is used here takes the sources.
"${PYTHON:-/usr/bin/python3}" -IS -m compileall -q -b -s "$work/files" \
    --invalidation-mode unchecked-hash "$work/files"
find "$work/files" -exec touch -d '2000-01-01 00:00Z' {} +
python3 -m zipapp "$work/files" --output "$work/zip" --compress
# -I and -S: no variable, folder or package of the user changes what runs. UTF-8 in every locale, so
# that names and values keep their bytes. By the second line the program recognises itself (real.py).
{
    printf '#!%s -ISXutf8\n# Slipway'"'"'s command line\n' "${PYTHON:-/usr/bin/python3}"
    cat "$work/zip"
} > "$work/slipway"
install -D -m 755 "$work/slipway" "$out"
