#!/usr/bin/env bash
# Writes requirements.txt and requirements-dev.txt anew: today's versions for the ranges in
# pyproject.toml, as the oldest Python that we support would get them.
# shellcheck source-path=SCRIPTDIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
. "$here/site.sh"

become_root "$@"
choose_engine
collect_site
OLDEST_PYTHON=3.11

# resolve FILE…: the exact versions for files of ranges, one a line.
resolve() {
    # shellcheck disable=SC2016  # expanded in the container
    engine run --rm --network=host --volume "$work:/wanted:ro" --volume "$SITE_DIR:/run/site:ro" \
        "localhost/slipway-portal:$SLIPWAY_CLONE" with-site sh -c '
            set -e
            python3 -m venv /tmp/venv
            /tmp/venv/bin/pip install --quiet --dry-run --ignore-installed --only-binary :all: \
                --python-version "$1" --target /tmp/none --report /tmp/report.json \
                $(printf " -r /wanted/%s" "$2" ${3:-}) >&2
            python3 -c "import json
for item in json.load(open(\"/tmp/report.json\"))[\"install\"]:
    print(item[\"metadata\"][\"name\"], item[\"metadata\"][\"version\"], sep=\"==\")"
        ' sh "$OLDEST_PYTHON" "$@" | sort --ignore-case
}

# write FILE TITLE: standard input, with a heading.
write() {
    {
        echo "# $2: exact versions for the ranges of pyproject.toml."
        echo "# Made by cluster/pin.sh; change pyproject.toml and run it again."
        cat
    } > "$REPO_DIR/$1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
python3 - "$REPO_DIR/pyproject.toml" "$work" <<'PY'
import pathlib, sys, tomllib
whole = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())
project, work = whole["project"], pathlib.Path(sys.argv[2])
runtime = project["dependencies"] + whole["build-system"]["requires"]
(work / "runtime").write_text("\n".join(runtime) + "\n")
(work / "dev").write_text("\n".join(project["optional-dependencies"]["dev"]) + "\n")
PY
resolve runtime > "$work/pins"
resolve pins dev | grep -vxF -f "$work/pins" > "$work/dev-pins"
write requirements.txt "What the portal image installs" < "$work/pins"
write requirements-dev.txt "What the tests need beyond requirements.txt" < "$work/dev-pins"
