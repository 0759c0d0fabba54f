#!/usr/bin/env bash
# make test: every check there is, the last ones on clusters of their own that are gone afterwards.
#
#   bash tests/run.sh [check] [unit] [slurm] [browser] [attack]     only these parts; none named: all
#
# slurm and browser mostly wait for Slurm, so they run side by side: each of CLUSTERS (2) clusters
# takes one file of tests after the other. The first gives apps subdomains and speaks https, the second
# ports and http (and so on in turns). Attacks on what depends on neither (ATTACKS_ONCE) are dealt out like
# these; all others run on each of the clusters.
# SLIPWAY_PROJECT (and PORT) name clusters that run already, for example SLIPWAY_PROJECT=slipway for the
# one of `make up`, or SLIPWAY_PROJECT="one two" PORT="8081 8082". PYTEST_ADDOPTS is heard, too.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PREFIX=slipway-test-
RESULTS=build/test-results
CLUSTERS=${CLUSTERS:-2}
# Attacks on shells, nodes, Slurm and files: how apps are addressed makes no difference to them.
ATTACKS_ONCE=(gpu_root hostile_runner hostile_shell job_numbers keys login_limits login_node logs more_time
    neighbour secrets sockets solid_gpu solid_neighbour storage_links variables)
started=$SECONDS
passed=0 failed=0
wrong=()
times=()
running=()
ours=

title() { printf '\n=== %s ===\n' "$*"; }

# --- what this machine lacks ---------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install() {
    echo "installing $*"
    as_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -o DPkg::Lock::Timeout=300 update -qq &&
        apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@"' sh "$@" > /dev/null
}

# need PROGRAM PACKAGE…
need() {
    command -v "$1" > /dev/null || install "${@:2}"
}

prepare_python() {
    local stamp=.venv/slipway-stamp now
    python3 -c 'import ensurepip' 2> /dev/null || install python3 python3-venv
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "Slipway needs Python 3.11 or newer; this is $(python3 --version)." >&2
        exit 1
    }
    now=$(cat pyproject.toml requirements.txt requirements-dev.txt | sha256sum)
    if [ "$(cat "$stamp" 2> /dev/null)" != "$now" ]; then
        echo "installing Python packages into .venv"
        [ -x .venv/bin/python ] || python3 -m venv .venv
        local pip=(.venv/bin/pip --disable-pip-version-check --quiet --no-input install)
        "${pip[@]}" --require-hashes --requirement requirements.txt --requirement requirements-dev.txt
        "${pip[@]}" --no-deps --no-build-isolation --editable .
        echo "$now" > "$stamp"
    fi
}

# --- checks and tests ----------------------------------------------------------------------------

# check NAME COMMAND…: silent when all is well.
check() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "$name: ok"
        passed=$((passed + 1))
    else
        printf '%s: FAILED\n%s\n' "$name" "$output"
        failed=$((failed + 1))
        wrong+=("$name")
    fi
}

shell_scripts() {
    git ls-files -z --cached --others --exclude-standard | xargs -0 grep -lE --null \
        -e '^#!.*[/ ](ba)?sh$' -e '^# shellcheck shell=' -- | grep -zvE '\.(j2|py|md|toml)$' | tr '\0' '\n'
}

shellcheck_all() {
    local scripts
    mapfile -t scripts < <(shell_scripts)
    [ ${#scripts[@]} -gt 5 ] || { echo "no scripts found"; return 1; }
    shellcheck "${scripts[@]}"
}

run_check() {
    title "Checks"
    need shellcheck shellcheck
    check "ruff check" .venv/bin/ruff check --quiet .
    check "ruff format" .venv/bin/ruff format --quiet --check --diff .
    check "mypy" .venv/bin/mypy portal tests bench
    check "who may import whom" .venv/bin/lint-imports --config setup.cfg
    check "shellcheck" shellcheck_all
}

# timed NAME COMMAND…: how long it took is said at the end.
timed() {
    local name=$1 begun=$SECONDS took
    shift
    "$@"
    took=$((SECONDS - begun))
    times+=("$(printf '%-20s %3d:%02d' "$name" $((took / 60)) $((took % 60)))")
}

# pytest_on NAME ARGUMENT…
pytest_on() {
    local name=$1 status=0
    shift
    rm -f "$RESULTS/$name.xml"
    .venv/bin/python -m pytest --junit-xml="$RESULTS/$name.xml" "$@" || status=$?
    judge "$name" "$status"
}

# judge NAME STATUS: a test that is skipped counts as failed, since it showed nothing.
judge() {
    local name=$1 counts lines
    [ "$2" -eq 0 ] || wrong+=("$name")
    if lines=$(count_results "$RESULTS/$name.xml"); then
        mapfile -t lines <<< "$lines"
        counts=${lines[0]}
        wrong+=("${lines[@]:1}")
        passed=$((passed + ${counts% *}))
        failed=$((failed + ${counts#* }))
    else
        failed=$((failed + 1))
        wrong+=("$name (no results)")
    fi
}

# "PASSED FAILED", then the name of each test that failed, in its body, before or after it.
count_results() {
    .venv/bin/python - "$1" <<'PY'
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1]).find("testsuite")
all_, bad, skipped = (
    sum(int(suite.get(name)) for name in names.split())
    for names in ("tests", "errors failures", "skipped")
)
for case in suite.iter("testcase"):
    if case.find("skipped") is not None:
        print("skipped, so it showed nothing:", case.get("classname"), case.get("name"), file=sys.stderr)
print(max(all_ - bad - skipped, 0), bad + skipped)
for case in suite.iter("testcase"):
    found = {child.tag for child in case} & {"failure", "error"}
    if found:
        print(f"{case.get('classname')}::{case.get('name')} ({', '.join(sorted(found))})")
sys.exit(all_ == 0)
PY
}

run_unit() {
    title "Unit tests"
    need haproxy haproxy
    need openssl openssl
    need lua5.1 lua5.1
    need gcc gcc libc6-dev
    need make make
    pytest_on unit tests/unit -n auto
}

prepare_clusters() {
    need ssh openssh-client
    need rsync rsync
    [ -n "${SLIPWAY_PROJECT:-}" ] || timed "starting clusters" start_clusters
    export SLIPWAY_PROJECT PORT=${PORT:-8080}
}

prepare_browser() {
    need chromium chromium fonts-dejavu-core
    if [ ! -e portal/web/static/vendor/axe.min.js ]; then
        need npm npm
        bash portal/web/assets/build.sh tests > /dev/null
    fi
}

# run_on_clusters PATH…: a file's tests share sessions, so a file stays on one cluster.
run_on_clusters() {
    local clusters
    clusters=$(wc -w <<< "$SLIPWAY_PROJECT")
    title "Tests on $clusters real cluster(s), in a real browser: $*"
    pytest_on clusters "$@" --timeout 240 --durations 30 \
        -n "$clusters" --dist loadfile --max-worker-restart 0
}

# The other attacks on each cluster, side by side; what each says is shown when it is over.
run_attack() {
    local projects ports number name status
    local once=("${ATTACKS_ONCE[@]/#/--ignore=tests/attack/test_}")
    read -ra projects <<< "$SLIPWAY_PROJECT"
    read -ra ports <<< "$PORT"
    title "Attacks on each of ${#projects[@]} real cluster(s): $SLIPWAY_PROJECT"
    for number in "${!projects[@]}"; do
        name=attack-$((number + 1))
        rm -f "$RESULTS/$name.xml"
        SLIPWAY_PROJECT=${projects[number]} PORT=${ports[number]} .venv/bin/python -m pytest tests/attack \
            "${once[@]/%/.py}" --timeout 240 --durations 15 --junit-xml="$RESULTS/$name.xml" --override-ini "cache_dir=.pytest_cache/$name" \
            > "$RESULTS/$name.log" 2>&1 &
        running+=($!)
    done
    for number in "${!projects[@]}"; do
        status=0
        wait "${running[number]}" || status=$?
        title "Attacks on ${projects[number]}"
        cat "$RESULTS/attack-$((number + 1)).log"
        judge "attack-$((number + 1))" "$status"
    done
    running=()
}

# --- clusters of our own -------------------------------------------------------------------------

lock_of() { echo "/var/tmp/$1.lock"; }

test_projects() {
    { cluster/ctl.sh projects; ls cluster/.cache/projects 2> /dev/null || true; } |
        grep "^$PREFIX" | sort -u || true
}

# Clusters of test runs that were killed: whoever still runs holds a lock.
remove_stale_clusters() {
    local project lock
    for project in $(test_projects); do
        lock=$(lock_of "${project%_*}")
        if [ ! -e "$lock" ] || flock --nonblock "$lock" true; then
            echo "removing what an earlier test run left: $project"
            COMPOSE_PROJECT_NAME=$project cluster/down.sh --data
            rm -f "$lock"
        fi
    done
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_clusters() {
    local number project https apps ports=()
    need flock util-linux
    remove_stale_clusters
    # Held until this process ends, however it ends; containers must not inherit it.
    exec 9> "$(lock_of "$PREFIX$$")"
    flock 9
    ours=yes
    for ((number = 1; number <= CLUSTERS; number++)); do
        project=$PREFIX$$_$number
        https=$((number % 2)) apps=ports
        [ "$https" = 0 ] || apps=subdomains
        title "A cluster for these tests: $project ($apps, HTTPS=$https)"
        ports+=("$(free_port)")
        COMPOSE_PROJECT_NAME=$project PORT=${ports[-1]} HTTPS=$https APPS=$apps cluster/up.sh 9>&- ||
            { wrong+=("starting the cluster $project"); exit 1; }
        SLIPWAY_PROJECT+=" $project"
    done
    export SLIPWAY_PROJECT PORT="${ports[*]}"
}

remove_clusters() {
    local number
    for ((number = 1; number <= CLUSTERS; number++)); do
        title "Removing the cluster $PREFIX$$_$number"
        COMPOSE_PROJECT_NAME=$PREFIX$$_$number cluster/down.sh --data || true
    done
    rm -f "$(lock_of "$PREFIX$$")"
}

# --- all of it -----------------------------------------------------------------------------------

# Runs at every exit, also after Ctrl-C: the cluster goes, and the last line says how it went.
finish() {
    local status=$? seconds summary
    trap - EXIT
    [ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2> /dev/null || true
    if [ -n "$ours" ]; then
        timed "removing clusters" remove_clusters
    fi
    [ ${#wrong[@]} -eq 0 ] || status=1
    [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
    summary="$passed passed"
    [ "$failed" -eq 0 ] || { summary="$failed failed, $summary"; status=1; }
    seconds=$((SECONDS - started))
    echo
    [ ${#wrong[@]} -eq 0 ] || printf 'FAILED %s\n' "${wrong[@]}"
    [ ${#times[@]} -eq 0 ] || printf 'took %s\n' "${times[@]}"
    printf '==== %s in %d.00s (%d:%02d:%02d) ====\n' "$summary" \
        "$seconds" $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60))
    exit "$status"
}

main() {
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [ $# -gt 0 ] || set -- check unit slurm browser attack
    local part live=() attack='' paths name
    for part in "$@"; do
        [[ $part =~ ^(check|unit|slurm|browser|attack)$ ]] || {
            sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
            exit 2
        }
    done
    trap finish EXIT
    mkdir -p "$RESULTS"
    prepare_python
    for part in "$@"; do
        case $part in
            check | unit) timed "$part" "run_$part" ;;
            attack) attack=yes ;;
            *) live+=("$part") ;;
        esac
    done
    if [ ${#live[@]} -gt 0 ] || [ -n "$attack" ]; then
        [[ " ${live[*]} " != *" browser "* && -z $attack ]] || prepare_browser
        prepare_clusters
    fi
    paths=("${live[@]/#/tests/}")
    if [ -n "$attack" ]; then
        live+=("attacks once")
        for name in "${ATTACKS_ONCE[@]}"; do
            paths+=("tests/attack/test_$name.py")
        done
    fi
    [ ${#paths[@]} -eq 0 ] || timed "${live[*]}" run_on_clusters "${paths[@]}"
    [ -z "$attack" ] || timed attack run_attack
}

main "$@"
