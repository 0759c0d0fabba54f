#!/bin/bash
# The files of a package as they will be on the target, in a builder container of its distribution:
#   tree.sh SOURCE WHEEL TREE [HAPROXY]    HAPROXY: folder of haproxy.sh, if the distribution's is too old
# All times are SOURCE_DATE_EPOCH, and builds are reproducible.
set -euo pipefail
export LC_ALL=C PYTHONHASHSEED=0
source_dir=$1 wheel=$2 tree=$3 haproxy=${4:-}
ours=/usr/lib/slipway
python=$ours/venv/bin/python
umask 022

install_wheel() {
    local name=${wheel##*/}
    "$python" -m pip --disable-pip-version-check --quiet install --no-deps --no-compile --no-index \
        --find-links "${wheel%/*}" "slipway==$(cut -d- -f2 <<< "$name")"
    "$python" -m pip --disable-pip-version-check --quiet uninstall --yes pip setuptools 2> /dev/null
    rm -f "$ours"/venv/bin/{Activate.ps1,activate*}
    # Compared with their sources by nobody, so times do not matter, and root's commands write none.
    find "$ours/venv" -name __pycache__ -prune -exec rm -rf {} +
    "$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$ours/venv/lib" || true
}

copy_system() {
    local system=$source_dir/deploy/packages/system
    install -m 755 -t "$tree$ours" "$system/configure" "$system/stop"
    install -D -m 644 "$system/sysusers.conf" "$tree/usr/lib/sysusers.d/slipway.conf"
    install -D -m 644 "$system/tmpfiles.conf" "$tree/usr/lib/tmpfiles.d/slipway.conf"
    install -d "$tree/usr/lib/systemd/system" "$tree/usr/bin"
    : > /tmp/none.toml
    slipway --config /tmp/none.toml render systemd --output "$tree/usr/lib/systemd/system" > /dev/null
    ln -s ../lib/slipway/venv/bin/slipway "$tree/usr/bin/slipway"
}

copy_documents() {
    local doc=$tree/usr/share/doc/slipway cli=$source_dir/portal/cli/doc
    install -D -m 644 -t "$doc" "$source_dir"/docs/administrators/*.md "$source_dir/CHANGELOG.md" \
        "$source_dir/deploy/packages/copyright"
    install -D -m 644 "$cli/completion.bash" "$tree/usr/share/bash-completion/completions/slipway"
    install -D -m 644 -t "$tree/usr/share/man/man8" "$cli/slipway.8"
    install -D -m 644 -t "$tree/usr/share/man/man1" "$cli/slipway-images.1"
    gzip -9n "$tree"/usr/share/man/man*/* "$doc/CHANGELOG.md"
}

slipway() { "$ours/venv/bin/slipway" "$@"; }

if [ -n "$haproxy" ]; then
    cp -r "$haproxy" "$ours/haproxy"
    ln -sfn ../../haproxy/haproxy "$ours/venv/bin/haproxy"
fi
install_wheel
mkdir -p "$tree/usr/lib"
cp -a "$ours" "$tree/usr/lib/"
copy_system
copy_documents
chown -R 0:0 "$tree"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
