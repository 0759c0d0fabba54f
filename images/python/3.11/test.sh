#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python - <<'PYTHON'
import sys
assert sys.version_info[:2] == (3, 11), sys.version
import numpy
assert numpy.allclose(numpy.linalg.inv(numpy.eye(3) * 2), numpy.eye(3) / 2)
print("  NumPy works")
PYTHON
git --version > /dev/null
python /checks/jupyter.py
