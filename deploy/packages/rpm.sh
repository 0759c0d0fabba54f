#!/bin/bash
# Pack a tree as an .rpm: rpm.sh SOURCE TREE VERSION OUT PYTHON
set -euo pipefail
top=$(mktemp -d)
rpmbuild --quiet -bb --define "_topdir $top" --define "tree $2" --define "version $3" --define "python $5" \
    --define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" "$1/deploy/packages/rpm/slipway.spec"
cp "$top"/RPMS/*/*.rpm "$4/"
