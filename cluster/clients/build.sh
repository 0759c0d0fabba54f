#!/bin/sh
# Install programs that submit jobs, for tests/slurm/test_batch_clients.py: cluster/clients/build.sh OUT
# They are on shared storage, since snakemake and Dask run in the images of their jobs as well.
set -eu
[ $# -eq 1 ] || { echo "usage: cluster/clients/build.sh OUT" >&2; exit 2; }
out=$1
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out.new"
# connection_pool has no wheel; what builds it is in the portal's own packages.
python3 -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation --require-hashes \
    --only-binary :all: --no-binary connection_pool --target "$out.new" --requirement "$here/requirements.txt"
rm -rf "$out"
mv "$out.new" "$out"
