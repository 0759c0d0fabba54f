#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
code-server --version | grep -q '^4\.139\.1 ' || { code-server --version; exit 1; }
for program in git gcc g++ make gdb python3; do
    command -v "$program" > /dev/null || { echo "there is no $program"; exit 1; }
done
# Without these modules there is no terminal, no watching of files, no log and no search.
cd /opt/code-server/lib/vscode
for module in node-pty @parcel/watcher @vscode/spdlog @vscode/native-watchdog @vscode/sqlite3 @vscode/fs-copyfile kerberos; do
    /opt/node/bin/node -e "require('$module')" || { echo "the module $module does not load"; exit 1; }
done
find node_modules/@vscode/ripgrep-universal -path '*linux-x64*' -name rg -exec {} --version \; | grep -q ripgrep
# As the app starts it.
work=$(mktemp -d)
cd "$work"
HOME=$work code-server --socket "$work/socket" --socket-mode 600 --auth none --session-socket "$work/session" \
    --disable-proxy --disable-telemetry --disable-update-check "$work" > log 2>&1 &
server=$!
trap 'kill $server' EXIT
tries=0
until curl -sf --unix-socket socket http://localhost/healthz > answer; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { cat log; exit 1; }
    sleep 0.5
done
grep -q '"status"' answer
curl -sfL --unix-socket socket http://localhost/ | grep -q vscode
