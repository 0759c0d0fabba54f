#!/bin/sh
# Build the wheel of a copy of the repository with browser libraries; in a builder container.
#   wheel.sh SOURCE OUT     SOURCE_DATE_EPOCH and SLIPWAY_REVISION are those of the commit
set -eu
cp -r "$1" /tmp/source
python3 -m venv --system-site-packages /tmp/venv
umask 022
# The archive has the files' permissions.
chmod -R u=rwX,go=rX /tmp/source
/tmp/venv/bin/pip --disable-pip-version-check --quiet wheel --no-deps --no-index --no-build-isolation \
    --wheel-dir "$2" /tmp/source
