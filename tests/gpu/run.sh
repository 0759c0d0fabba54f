#!/usr/bin/env bash
# The shim of fractional GPUs on this machine's own NVIDIA GPU, without Slurm and without the network:
#
#   bash tests/gpu/run.sh
#
# runs the tests and then measures (bench/gpu.py): at most ten minutes. The last lines are a Markdown
# block for gres/README.md. It needs an NVIDIA driver, gcc, make and pytest; root is not needed. PYTHON
# names the Python that has PyTorch, CuPy, JAX and Triton; what that one lacks is skipped with a line
# that says so. Nothing else should use the GPU meanwhile. `make test` does not run this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export PYTHON=${PYTHON:-python3}
tests=.venv/bin/python
"$tests" -c 'import pytest' 2> /dev/null || tests=$PYTHON
for program in gcc make readelf "$PYTHON"; do
    command -v "$program" > /dev/null || { echo "tests/gpu/run.sh: $program is missing" >&2; exit 1; }
done
"$tests" -c 'import pytest' || { echo "tests/gpu/run.sh: pytest is missing" >&2; exit 1; }

status=0
# Only the conftest of this folder: the others need what the portal needs.
timeout 330 "$tests" -m pytest tests/gpu --confcutdir=tests/gpu -p no:cacheprovider -rs || status=$?
timeout 270 "$tests" -m bench.gpu || status=$?
exit "$status"
