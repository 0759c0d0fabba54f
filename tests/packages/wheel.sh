#!/bin/bash
# The wheel in an environment of its own, with exactly the packages of its file of requirements.
. /tests/common.sh

use_mirrors
apt_get install python3-venv > /tmp/apt.log 2>&1 || { tail /tmp/apt.log; fail "python3-venv"; }
python3 -m venv /tmp/venv
with-site /tmp/venv/bin/pip install --quiet --require-hashes --find-links /dist -r "/dist/slipway-$VERSION-requirements.txt"
expect "slipway $VERSION" /tmp/venv/bin/slipway --version
/tmp/venv/bin/pip check
(cd /dist && sha256sum --quiet -c SHA256SUMS)
