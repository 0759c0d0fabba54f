# shellcheck shell=bash
# Sourced by the scripts that run in fresh containers.
set -euo pipefail
STATE=/var/lib/slipway
SETTINGS=/etc/slipway/slipway.toml
# The role's test makes one host both: login nodes have another command of this name, in /usr/local/bin.
PATH=/usr/bin:$PATH

say() { printf -- '- %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}
# expect TEXT COMMAND… — the command's output contains the text.
expect() {
    local text=$1 seen
    shift
    seen=$("$@" 2>&1) || fail "$*: $seen"
    [[ $seen == *"$text"* ]] || fail "$*: no \"$text\" in: $seen"
}

use_mirrors() {
    if [ -s "/run/site/apt.sources-$SUITE" ]; then
        rm -f /etc/apt/sources.list
        cp "/run/site/apt.sources-$SUITE" /etc/apt/sources.list.d/debian.sources
    fi
    with-site apt-get update -qq
}

apt_get() { with-site apt-get -qq -y --no-install-recommends "$@"; }
as_slipway() { runuser -u slipway -- "$@"; }
digest_of_keys() { (cd "$STATE" && find ca keys secret_key -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum); }

try_settings() {
    [ "$(stat -c '%a %U %G' "$SETTINGS")" = "640 root slipway" ] || fail "$SETTINGS has other permissions"
    slipway config | cmp - "$SETTINGS" || fail "$SETTINGS is not what slipway config prints"
    [ "$(stat -c '%a %U' "$STATE")" = "700 slipway" ] || fail "$STATE has other permissions"
    expect "slipway $VERSION" slipway --version
}

try_state() {
    as_slipway slipway init
    [ "$(stat -c '%a %U' "$STATE/ca/user_ca")" = "600 slipway" ] || fail "the authority has other permissions"
    slipway render haproxy --output /etc/slipway/haproxy.cfg
    haproxy=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' /usr/lib/systemd/system/slipway-proxy.service)
    expect "version 3." "$haproxy" -v
    as_slipway "$haproxy" -c -f /etc/slipway/haproxy.cfg
}

try_units() {
    local unit
    systemd-analyze verify --man=no /usr/lib/systemd/system/slipway{.target,-web.service,-worker.service,-proxy.service}
    for unit in web worker proxy; do
        systemd-analyze security --offline=true --threshold=40 --no-pager \
            "/usr/lib/systemd/system/slipway-$unit.service" | tail -n 1
    done
}

# The processes as the units start them, without systemd; pages have their style, and the worker runs.
try_services() {
    local pids=() name command
    for name in web worker proxy; do
        command=$(sed -n 's/^ExecStart=//p' "/usr/lib/systemd/system/slipway-$name.service")
        # shellcheck disable=SC2086  # a command line
        as_slipway env HOME=$STATE ${command/-Ws/-W} > "/tmp/$name.log" 2>&1 &
        pids+=($!)
    done
    /usr/lib/slipway/venv/bin/python /tests/answers.py http://localhost:8080 || { tail -n 20 /tmp/*.log; fail "the portal does not answer"; }
    for name in "${pids[@]}"; do kill -0 "$name" || { tail -n 20 /tmp/*.log; fail "a service has ended"; }; done
    kill "${pids[@]}"
    wait "${pids[@]}" 2> /dev/null || true
}
