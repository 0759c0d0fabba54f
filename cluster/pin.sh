#!/usr/bin/env bash
# Writes requirements.txt anew: today's versions for the ranges in pyproject.toml.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
. "$here/site.sh"

become_root "$@"
choose_engine
collect_site
# shellcheck disable=SC2016  # expanded in the container
pins=$(engine run --rm --network=host --volume "$REPO_DIR:/repo:ro" --volume "$SITE_DIR:/run/site:ro" \
    localhost/slipway-portal:latest with-site sh -c '
        python3 -m venv /tmp/venv
        python3 -c "import tomllib
project = tomllib.load(open(\"/repo/pyproject.toml\", \"rb\"))
print(*project[\"project\"][\"dependencies\"], *project[\"build-system\"][\"requires\"], sep=\"\n\")" > /tmp/wanted
        /tmp/venv/bin/pip install --quiet -r /tmp/wanted >&2
        /tmp/venv/bin/pip freeze --all --exclude pip')
{
    echo '# What the portal image installs: exact versions for the ranges of pyproject.toml.'
    echo '# Made by cluster/pin.sh; change pyproject.toml and run it again.'
    echo "$pins"
} > "$REPO_DIR/requirements.txt"
