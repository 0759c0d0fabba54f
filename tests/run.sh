#!/usr/bin/env bash
# make test: all checks and tests; those that need a cluster run on separate, temporary clusters.
#
#   bash tests/run.sh [check] [unit] [slurm] [browser] [attack]     only these parts; by default, all
#   bash tests/run.sh cgroup2   in a virtual machine with cgroup v2 only (tests/cgroup2), for 24.11 and 26.05
#   bash tests/run.sh docs      the documentation as a site, in build/site
#   bash tests/run.sh hosts     two portal hosts on a PostgreSQL, on a cluster of their own (tests/hosts)
#   bash tests/run.sh images    every image that is built: its own test, and in sessions on one cluster
#
# Tests on clusters mostly wait for Slurm, so they run in parallel: each of CLUSTERS clusters (4; 2 on a
# machine with little memory) runs one test file after the other. The first has subdomains for apps,
# https, and JupyterHub 6 with internal_ssl; the second ports, http and JupyterHub 5; and so on
# alternately. Attacks run on a cluster of each kind, all other tests on one cluster (tests/sharing.py).
# Clusters start while check and unit run. One more cluster has the other version of Slurm, and runs
# OTHER_SLURM_TESTS only.
# SLIPWAY_PROJECT (and PORT) name running clusters to use, for example SLIPWAY_PROJECT=slipway for the
# one of `make hub`, or SLIPWAY_PROJECT="one two" PORT="8081 8082". PYTEST_ADDOPTS applies, too.
# shellcheck source-path=SCRIPTDIR/..
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PREFIX=slipway-test-
RESULTS=build/test-results
TOOLS=build/tools
ENOUGH_MEMORY=10000000 # kB available; four clusters and their browsers take about 8 GB
# What depends most on Slurm's own words and fields.
OTHER_SLURM_TESTS=(tests/slurm/test_{launcher,session,queue,slurm_options,gpu_node,sbatch_options}.py)
# Several processes that share a GPU in real time: whoever keeps the processor from them fails the test.
REAL_TIME=tests/unit/gres/limiter/test_shares.py
started=$SECONDS
passed=0 failed=0
wrong=()
repeated=()
times=()
running=()
missing=()
projects=()
ports=()
starting=
other=
real_time=
ours=
parts=()

title() { printf '\n=== %s ===\n' "$*"; }

# --- missing packages ----------------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install() {
    echo "installing $*"
    as_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get -o DPkg::Lock::Timeout=300 update -qq &&
        apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@"' sh "$@" > /dev/null
}

# need PROGRAM PACKAGE…: missing packages are installed together, before anything runs.
need() {
    command -v "$1" > /dev/null || missing+=("${@:2}")
}

# take PROGRAM PACKAGE FILE: only the program is taken out of a package whose server nobody wants to have running.
take() {
    local folder
    ! command -v "$1" > /dev/null || return 0
    echo "fetching $1"
    folder=$(mktemp -d)
    as_root apt-get -o DPkg::Lock::Timeout=300 update -qq > /dev/null
    (cd "$folder" && apt-get download -qq "$2" > /dev/null 2>&1 && dpkg-deb --extract ./*.deb .)
    mkdir -p "$TOOLS"
    mv "$folder/$3" "$TOOLS/$1"
    rm -rf "$folder"
}

needs_of() {
    case $1 in
        check)
            need shellcheck shellcheck
            need npm npm
            ;;
        unit)
            take promtool prometheus usr/bin/promtool
            need haproxy haproxy
            need openssl openssl
            need gpg gpg
            need tmux tmux
            need gcc gcc libc6-dev
            need make make
            [ -n "$(ls /usr/lib/postgresql/*/bin/initdb 2> /dev/null)" ] || need initdb postgresql
            need rclone rclone
            need bzip2 bzip2
            need xz xz-utils
            need zip zip
            need zstd zstd
            need curl curl
            need litmus litmus
            need cadaver cadaver
            # Every login shell that Debian packages (tests/support/login_shells.py).
            need bsd-csh csh
            need busybox busybox
            need elvish elvish
            need fish fish
            need ksh93 ksh93u+m
            need mksh mksh
            need posh posh
            need rc rc
            need sash sash
            need tcsh tcsh
            need xonsh xonsh
            need yash yash
            need zsh zsh
            need npm npm
            ;;
        cgroup2)
            need qemu-system-x86_64 qemu-system-x86
            need busybox busybox-static
            need cpio cpio
            need depmod kmod
            need xz xz-utils
            need mkfs.ext4 e2fsprogs
            need ssh openssh-client
            ;;
        browser | attack | images)
            need haproxy haproxy
            need chromium-headless-shell chromium-headless-shell fonts-dejavu-core
            need firefox-esr firefox-esr
            need npm npm
            ;;&
        slurm | browser | attack | images | hosts)
            need ssh openssh-client
            need rsync rsync
            need flock util-linux
            ;;
    esac
}

prepare() {
    local part
    for part in "$@"; do
        needs_of "$part"
    done
    [ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
    prepare_python
    [[ " $* " != *" unit "* ]] || prepare_clients
    if [[ " $* " =~ \ (browser|attack|images)\  ]]; then bash portal/web/client/build.sh tests > /dev/null; fi
    if [[ " $* " == *" check "* ]]; then bash portal/web/client/build.sh packages > /dev/null; fi
}

# The generators of clients in TypeScript, for the unit tests of the API's document.
prepare_clients() {
    cmp -s tests/clients/package-lock.json tests/clients/node_modules/.slipway-lock && return
    (cd tests/clients && npm ci --ignore-scripts --no-audit --no-fund > /dev/null)
    cp tests/clients/package-lock.json tests/clients/node_modules/.slipway-lock
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

# check NAME COMMAND…: prints the output only on failure.
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
    check "ruff check" .venv/bin/ruff check --quiet .
    check "ruff format" .venv/bin/ruff format --quiet --check --diff .
    check "mypy" .venv/bin/mypy portal tests bench docs/hooks.py
    check "import rules" .venv/bin/lint-imports --config setup.cfg
    check "path calls" .venv/bin/python -m tests.path_calls
    check "waits" .venv/bin/python -m tests.waits
    check "shellcheck" shellcheck_all
    check "browser code: lint" npm --prefix portal/web/client run --silent lint
    check "browser code: types" npm --prefix portal/web/client run --silent types
    check "browser code: unit tests" node --test tests/unit/web/client/*.test.mjs
}

# The output names the images that are not built.
run_images() {
    title "Images"
    if cluster/images.sh test; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        wrong+=("images")
    fi
}

# timed NAME COMMAND…: its duration is printed at the end.
timed() {
    local name=$1 begun=$SECONDS
    shift
    "$@"
    took "$name" $((SECONDS - begun))
}

# took NAME SECONDS
took() {
    times+=("took $(printf '%-20s %3d:%02d' "$1" $(($2 / 60)) $(($2 % 60)))")
}

# judge NAME STATUS: a skipped test counts as failed, since it has verified nothing.
judge() {
    local name=$1 counts lines kind rest
    [ "$2" -eq 0 ] || wrong+=("$name")
    if ! lines=$(.venv/bin/python tests/results.py "$RESULTS/$name.xml"); then
        failed=$((failed + 1))
        wrong+=("$name (no results)")
        return
    fi
    while read -r kind rest; do
        case $kind in
            counts)
                counts=$rest
                passed=$((passed + ${counts% *}))
                failed=$((failed + ${counts#* }))
                ;;
            failed) wrong+=("$rest") ;;
            repeated) repeated+=("$rest") ;;
            slow) times+=("     $rest") ;;
        esac
    done <<< "$lines"
}

# unit NAME ARGUMENT…
unit() {
    local name=$1 begun=$SECONDS status=0
    shift
    rm -f "$RESULTS/$name.xml"
    .venv/bin/python -m pytest "$@" --junit-xml="$RESULTS/$name.xml" || status=$?
    took "$name" $((SECONDS - begun))
    judge "$name" "$status"
}

# More processes than cores, since they wait for two fifths of the time.
run_unit() {
    title "Unit tests"
    unit unit tests/unit --ignore "$REAL_TIME" -n $(($(nproc) * 3 / 2))
}

# In the background, ahead of everything else on the processors where the kernel permits that (root).
begin_real_time() {
    chrt --rr 1 true 2> /dev/null || return 0
    rm -f "$RESULTS/unit-real-time.xml"
    chrt --rr 1 .venv/bin/python -m pytest -n 0 "$REAL_TIME" --junit-xml="$RESULTS/unit-real-time.xml" \
        --override-ini cache_dir=.pytest_cache/real-time > >(sed -u 's/^/[unit-real-time] /') 2>&1 &
    real_time=$!
}

# Otherwise once all clusters have started, and before they work.
end_real_time() {
    local status=0
    if [ -z "$real_time" ]; then
        title "Unit tests that measure time"
        unit unit-real-time "$REAL_TIME"
        return
    fi
    wait "$real_time" || status=$?
    real_time=
    judge unit-real-time "$status"
}

# run_on_clusters PATH…: clusters of a kind share that kind's tests; the kinds run in parallel.
run_on_clusters() {
    local kinds=2 kind begun=$SECONDS status empty=0
    [ ${#projects[@]} -gt 1 ] || kinds=1
    title "Tests on ${#projects[@]} real cluster(s), in a real browser: $*"
    for ((kind = 1; kind <= kinds; kind++)); do
        run_on_kind "$kind" "$kinds" "$@"
    done
    begin_other_slurm
    for kind in "${!running[@]}"; do
        status=0
        wait "${running[kind]}" || status=$?
        took "clusters-$((kind + 1))" $((SECONDS - begun))
        # With few files, all may be in one kind's share (5: pytest has found no tests).
        if [ "$status" -eq 5 ] && [ $((++empty)) -lt "$kinds" ]; then
            continue
        fi
        judge "clusters-$((kind + 1))" "$status"
    done
    running=()
}

# run_on_kind KIND KINDS PATH…: in the background. A file's tests share sessions, so a file stays on one
# cluster; we define the order, since we know which files take long.
run_on_kind() {
    local kind=$1 kinds=$2 number name=clusters-$1 kind_projects=() kind_ports=()
    shift 2
    for ((number = kind - 1; number < ${#projects[@]}; number += kinds)); do
        kind_projects+=("${projects[number]}")
        kind_ports+=("${ports[number]}")
    done
    rm -f "$RESULTS/$name.xml"
    SLIPWAY_PROJECT=${kind_projects[*]} PORT=${kind_ports[*]} .venv/bin/python -m pytest "$@" --share "$kind/$kinds" \
        --junit-xml="$RESULTS/$name.xml" --override-ini "cache_dir=.pytest_cache/$name" --timeout 240 --durations 20 \
        -n "${#kind_projects[@]}" --dist loadfile --no-loadscope-reorder --max-worker-restart 0 \
        > >(sed -u "s/^/[$name] /") 2>&1 &
    running+=($!)
}

# One virtual machine after the other; SLURM=26.05 chooses one version.
run_cgroup2() {
    local version name port status begun
    for version in ${SLURM:-24.11 26.05}; do
        begun=$SECONDS status=0 name=cgroup2-$version port=$(free_port)
        title "Slurm $version with cgroup v2 only, in a virtual machine"
        rm -f "$RESULTS/$name.xml"
        machine build > "$RESULTS/$name.log" 2>&1 < /dev/null || status=$?
        if [ "$status" -ne 0 ]; then
            tail -n 20 "$RESULTS/$name.log"
            wrong+=("building the virtual machine for Slurm $version")
            continue
        fi
        machine start
        SLURM=$version SLIPWAY_PROJECT=slipway-cgroup2 PORT=$port .venv/bin/python -m pytest tests/cgroup2 \
            --timeout 1800 --durations 20 --junit-xml="$RESULTS/$name.xml" || status=$?
        machine console > "$RESULTS/$name.console"
        machine stop
        took "$name" $((SECONDS - begun))
        judge "$name" "$status"
    done
}

# machine ACTION: of the version and port that run_cgroup2 has chosen.
machine() { SLURM=$version PORT=$port tests/cgroup2/machine.sh "$@"; }

# On a cluster with the other version of Slurm, whose images are built first, in the background.
begin_other_slurm() {
    [ -n "$ours" ] && [[ " ${parts[*]} " == *" slurm "* ]] || return 0
    local name=other-slurm version=26.05 project=$PREFIX$$_other port status=0
    [ "${SLURM:-24.11}" != "$version" ] || version=24.11
    port=$(free_port)
    projects+=("$project")
    rm -f "$RESULTS/$name.xml"
    set -m
    {
        title "A cluster with Slurm $version: $project"
        SLURM=$version COMPOSE_PROJECT_NAME=$project PORT=$port HTTPS=0 APPS=ports HUB='' cluster/up.sh 9>&- < /dev/null &&
            SLIPWAY_PROJECT=$project PORT=$port .venv/bin/python -m pytest "${OTHER_SLURM_TESTS[@]}" --timeout 240 \
                --junit-xml="$RESULTS/$name.xml" --override-ini "cache_dir=.pytest_cache/$name" --durations 20 ||
            status=$?
        # The others need the processors that its daemons use.
        COMPOSE_PROJECT_NAME=$project cluster/down.sh --data 9>&- < /dev/null
        exit "$status"
    } > >(sed -u "s/^/[$name] /") 2>&1 &
    other=$!
    set +m
}

end_other_slurm() {
    local status=0 begun=$SECONDS
    [ -n "$other" ] || return 0
    wait "$other" || status=$?
    other=
    took "other Slurm after that" $((SECONDS - begun))
    judge other-slurm "$status"
}

# --- temporary clusters --------------------------------------------------------------------------

lock_of() { echo "/var/tmp/$1.lock"; }

test_projects() {
    { cluster/ctl.sh projects; ls cluster/.cache/projects 2> /dev/null || true; } |
        grep "^$PREFIX" | sort -u || true
}

# Clusters of killed test runs: a test run that is alive holds a lock.
remove_stale_clusters() {
    local project lock
    for project in $(test_projects); do
        lock=$(lock_of "${project%_*}")
        if [ ! -e "$lock" ] || flock --nonblock "$lock" true; then
            echo "removing the cluster of an earlier test run: $project"
            COMPOSE_PROJECT_NAME=$project cluster/down.sh --data
            rm -f "$lock"
        fi
    done
}

# Below the kernel's range of ephemeral ports, since it is used only minutes later.
free_port() {
    python3 - <<'PY'
import random, socket
while True:
    port = random.randrange(15000, 32000)
    with socket.socket() as s:
        if s.connect_ex(("127.0.0.1", port)):
            break
print(port)
PY
}

# In the background, in a separate process group; wait_for_clusters prints its output.
begin_clusters() {
    local number
    remove_stale_clusters
    # Held until this process ends in any way; containers must not inherit it.
    exec 9> "$(lock_of "$PREFIX$$")"
    flock 9
    ours=yes
    for ((number = 1; number <= CLUSTERS; number++)); do
        projects+=("$PREFIX$$_$number")
        ports+=("$(free_port)")
    done
    set -m
    start_clusters > "$RESULTS/starting.log" 2>&1 < /dev/null 9>&- &
    starting=$!
    set +m
}

start_clusters() {
    local number https apps hub
    for number in "${!projects[@]}"; do
        https=$(((number + 1) % 2)) apps=ports hub=5.5
        [ "$https" = 0 ] || apps=subdomains hub=6.1
        title "A cluster for these tests: ${projects[number]} ($apps, HTTPS=$https, HUB=$hub)"
        COMPOSE_PROJECT_NAME=${projects[number]} PORT=${ports[number]} HUB_PORT=$(free_port) \
            HTTPS=$https APPS=$apps HUB=$hub IMAGES=all cluster/up.sh
    done
    echo "all clusters started after $((SECONDS - started)) s"
    # Goes on while the first tests run: it may take minutes, and test_foreign_apps.py waits for it.
    if [[ " ${parts[*]} " == *" slurm "* ]]; then
        COMPOSE_PROJECT_NAME=${projects[0]} cluster/images.sh for-tests > "$RESULTS/test-image.log" 2>&1 &
    fi
}

wait_for_clusters() {
    local status=0 pid=$starting
    [ -n "$pid" ] || return 0
    wait "$pid" || status=$?
    starting=
    cat "$RESULTS/starting.log"
    [ "$status" -eq 0 ] || { wrong+=("starting clusters"); exit 1; }
}

# The clusters that the caller has named, or new ones.
choose_clusters() {
    local available
    available=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
    CLUSTERS=${CLUSTERS:-$((available < ENOUGH_MEMORY ? 2 : 4))}
    if [ -z "${SLIPWAY_PROJECT:-}" ]; then
        begin_clusters
    else
        read -ra projects <<< "$SLIPWAY_PROJECT"
        read -ra ports <<< "${PORT:-8080}"
    fi
}

remove_clusters() {
    local number
    title "Removing the clusters"
    for number in "${!projects[@]}"; do
        COMPOSE_PROJECT_NAME=${projects[number]} cluster/down.sh --data &
    done
    wait
    rm -f "$(lock_of "$PREFIX$$")"
}

# --- main ----------------------------------------------------------------------------------------

# Runs at every exit, also after Ctrl-C: removes the clusters, and prints the summary as the last line.
finish() {
    local status=$? seconds summary
    trap - EXIT
    [ ${#running[@]} -eq 0 ] || kill "${running[@]}" 2> /dev/null || true
    [ -z "$real_time" ] || kill "$real_time" 2> /dev/null || true
    [ -z "$other" ] || kill -- "-$other" 2> /dev/null || true
    [ -z "$starting" ] || kill -- "-$starting" 2> /dev/null || true
    [ ! -e cluster/.cache/cgroup2/running/pid ] || [[ " ${parts[*]} " != *" cgroup2 "* ]] || tests/cgroup2/machine.sh stop
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
    [ ${#repeated[@]} -eq 0 ] || printf 'FAILED ONCE, repeated: %s\n' "${repeated[@]}"
    [ ${#times[@]} -eq 0 ] || printf '%s\n' "${times[@]}"
    printf '==== %s in %d.00s (%d:%02d:%02d) ====\n' "$summary" \
        "$seconds" $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60))
    exit "$status"
}

main() {
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [ $# -gt 0 ] || set -- check unit slurm browser attack
    local part paths=()
    for part in "$@"; do
        case $part in
            check | unit | cgroup2 | docs) ;;
            slurm | browser | attack) paths+=("tests/$part") ;;
            hosts)
                paths+=(tests/hosts)
                CLUSTERS=1
                export HOSTS=2 PORT2
                PORT2=${PORT2:-$(free_port)}
                ;;
            images)
                paths+=(tests/slurm/test_recipes.py tests/browser/test_{frameworks,desktop,desktop_xfce}.py)
                CLUSTERS=${CLUSTERS:-1}
                ;;
            *)
                sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
                exit 2
                ;;
        esac
    done
    parts=("$@")
    PATH=$PATH:$PWD/$TOOLS
    trap finish EXIT
    mkdir -p "$RESULTS"
    timed preparing prepare "$@"
    [ ${#paths[@]} -eq 0 ] || choose_clusters
    [[ " $* " != *" check "* ]] || timed check run_check
    [[ " $* " != *" docs "* ]] || check "docs" .venv/bin/python -m mkdocs build --strict --quiet --clean
    if [[ " $* " == *" unit "* ]]; then
        begin_real_time
        run_unit
    fi
    if [[ " $* " == *" images "* ]]; then
        timed "clusters before that" wait_for_clusters # they come with the builder image
        timed images run_images
    fi
    [[ " $* " != *" cgroup2 "* ]] || run_cgroup2
    [ ${#paths[@]} -eq 0 ] || timed "clusters after that" wait_for_clusters
    [[ " $* " != *" unit "* ]] || end_real_time
    if [ ${#paths[@]} -gt 0 ]; then
        run_on_clusters "${paths[@]}"
        end_other_slurm
    fi
}

main "$@"
