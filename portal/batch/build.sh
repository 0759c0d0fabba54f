#!/bin/sh
# Build the command for login and compute nodes: one file that needs only Python 3.9.
#   portal/batch/build.sh OUT      for example portal/batch/build.sh /usr/local/bin/slipway
# It contains portal/batch, portal/file_server and four files of portal/core: units of GPUs, addresses of images, JSON, Slurm's variables; builds are reproducible.
# PYTHON names the interpreter if it is not /usr/bin/python3.
set -eu
[ $# -eq 1 ] || { echo "usage: portal/batch/build.sh OUT" >&2; exit 2; }
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/files/portal/core/cluster"
# Empty: the portal's own ones would import Flask.
: > "$work/files/portal/__init__.py"
: > "$work/files/portal/core/__init__.py"
: > "$work/files/portal/core/cluster/__init__.py"
cp "$source_dir/portal/core/cluster/fgpu.py" "$work/files/portal/core/cluster/"
mkdir "$work/files/portal/core/launch"
: > "$work/files/portal/core/launch/__init__.py"
cp "$source_dir/portal/core/launch/reference.py" "$source_dir/portal/core/launch/folder_name.py" \
    "$work/files/portal/core/launch/"
cp "$source_dir/portal/core/json_text.py" "$source_dir/portal/core/slurm_variables.py" "$work/files/portal/core/"
cp -r "$source_dir/portal/batch" "$source_dir/portal/file_server" "$work/files/portal/"
find "$work/files" -name __pycache__ -prune -exec rm -rf {} +
rm -r "$work/files/portal/batch/build.sh" "$work/files/portal/batch/doc"
printf 'from portal.batch.main import main\nmain()\n' > "$work/files/__main__.py"
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
