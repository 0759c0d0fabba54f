#!/usr/bin/env bash
# The shim of fractional GPUs on this machine's own NVIDIA GPU, without Slurm and without the network:
#
#   bash tests/gpu/run.sh 1       look-ups, launches, capture, rounding, contexts, debt: the most telling ones
#   bash tests/gpu/run.sh 2a      memory, sessions side by side, NVML, the watchdog, MPS, linking
#   bash tests/gpu/run.sh 2b      PyTorch
#   bash tests/gpu/run.sh 2c      CuPy, JAX, Triton, Numba, cuda.core, TensorFlow, debuggers
#   bash tests/gpu/run.sh 3       bench/gpu: the table for gres/README.md
#   bash tests/gpu/run.sh all     one after the other
#   bash tests/gpu/run.sh CASE …  cases by name;  --list prints all of them and what must be seen
#
# Each step ends within ten minutes and goes on after failures. OUT (build/gpu) gets what was seen as JSON.
# It needs an NVIDIA driver, gcc, make, readelf and Python 3.10; root is needed for the case with a PID
# namespace only where users may not make one. PYTHON names the Python that has PyTorch and the others; what
# that one lacks is not run, with a line that says so. Nothing else should use the GPU meanwhile.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

export PYTHON=${PYTHON:-python3}
suite=.venv/bin/python
"$suite" -c '' 2> /dev/null || suite=$PYTHON
"$suite" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "tests/gpu/run.sh: $suite: Python 3.10 or newer is missing" >&2
    exit 1
}

# The suite has its own limits; this one is for the suite.
step() {
    if [ "${1:-}" = 3 ]; then timeout -k 5 600 "$suite" -m bench.gpu; else timeout -k 5 600 "$suite" -m tests.gpu "$@"; fi
}

status=0
if [ "${1:-}" = all ]; then
    for one in 1 2a 2b 2c 3; do
        step "$one" || status=1
    done
else
    step "$@" || status=$?
fi
exit "$status"
