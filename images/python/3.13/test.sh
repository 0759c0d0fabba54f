#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python - <<'PYTHON'
import sys
assert sys.version_info[:2] == (3, 13), sys.version
import matplotlib.pyplot, numpy, pandas, scipy.linalg
assert numpy.allclose(scipy.linalg.inv(numpy.eye(3) * 2), numpy.eye(3) / 2)
assert pandas.DataFrame({"a": [1, 2, 3]})["a"].sum() == 6
figure = matplotlib.pyplot.figure()
figure.gca().plot([1, 2, 3])
figure.savefig("figure.png")
print("  scientific basics work")
import tensorboard.program
from mpi4py import MPI
assert MPI.COMM_WORLD.Get_size() == 1, MPI.Get_library_version()
PYTHON
git --version > /dev/null
python /checks/jupyter.py
