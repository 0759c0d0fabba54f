#!/bin/bash
# Build the toolkit that is bound read-only into every session at /opt/slipway:
#   images/toolkit/build.sh OUT.sqsh
# It contains the runner with its own Python, the gateway (HAProxy), ttyd, tmux, openssl, sshd with
# its helpers, and rsync, with all libraries including the C library, so that an image needs none of
# them; the desktop's X server and page (desktop/); and in gpu/ the shim of the GPU driver (gres/shim). Run as root on Debian trixie with sid as
# an extra suite (only sid has ttyd), preferably in a container, since missing packages are
# installed. Builds are reproducible:
#   images/toolkit/same.sh   builds it twice and compares
set -euo pipefail
export LC_ALL=C TZ=UTC PYTHONHASHSEED=0

readonly prefix=/opt/slipway
die() { echo "images/toolkit/build.sh: $*" >&2; exit 1; }

[[ $# == 1 ]] || die "usage: images/toolkit/build.sh OUT.sqsh"
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d /var/tmp/slipway-toolkit.XXXXXX)
trap 'rm -rf "$work"' EXIT
tree=$work/tree

install_packages() {
    local missing=() pair
    if [[ -s /run/site/apt.conf ]]; then export APT_CONFIG=/run/site/apt.conf; fi
    for pair in haproxy:haproxy tmux:tmux python3:python3 openssl:openssl patchelf:patchelf \
        mksquashfs:squashfs-tools ttyd:ttyd/sid rsync:rsync scp:openssh-client \
        gcc:gcc make:make Xvnc:tigervnc-standalone-server xkbcomp:x11-xkb-utils esbuild:esbuild; do
        command -v "${pair%%:*}" > /dev/null || missing+=("${pair#*:}")
    done
    # ttyd loads its event loop by name and HAProxy's descriptions come from ncurses-term.
    [[ -e /usr/share/terminfo/t/tmux-256color ]] || missing+=(ncurses-term)
    compgen -G '/usr/lib/*/libwebsockets-evlib_uv.so' > /dev/null || missing+=(libwebsockets-evlib-uv)
    compgen -G '/usr/lib/*/libnss_wrapper.so' > /dev/null || missing+=(libnss-wrapper)
    [[ -x /usr/lib/openssh/sshd-session ]] || missing+=(openssh-server)
    [[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)
    [[ ${#missing[@]} == 0 ]] && return
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" \
        > "$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log" >&2; die "cannot install ${missing[*]}"; }
}

copy_libraries_of() {
    local library
    for library in $(ldd "$@" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u); do
        cp -nL "$library" "$tree/lib/" || true
    done
}

# Absolute paths of loader and libraries, since the toolkit's path in a container is fixed: programs
# then start directly, show their own names in ps, and LD_LIBRARY_PATH leaks in neither direction
# (DT_RPATH takes precedence over the environment).
set_library_path() {
    patchelf --set-interpreter "$prefix/lib/ld.so" --force-rpath --set-rpath "$prefix/lib" "$1"
}

# copy_program NAME [PATH]
copy_program() {
    local program
    program=$(readlink -f "${2:-$(command -v "$1")}")
    install -m 755 "$program" "$tree/bin/$1"
    copy_libraries_of "$program"
    set_library_path "$tree/bin/$1"
}

# sshd starts a program for each connection, and that another one; apps/ssh configures their paths.
# User names come from the app's own passwd file (nss_wrapper), since an image may not know them.
copy_ssh() {
    local wrapper
    copy_program sshd /usr/sbin/sshd
    copy_program sshd-session /usr/lib/openssh/sshd-session
    copy_program sshd-auth /usr/lib/openssh/sshd-auth
    copy_program sftp-server /usr/lib/openssh/sftp-server
    copy_program ssh-keygen
    copy_program scp
    wrapper=$(compgen -G '/usr/lib/*/libnss_wrapper.so')
    cp -L "$wrapper" "$tree/lib/"
    copy_libraries_of "$wrapper"
}

copy_loader() {
    local loader
    loader=$(readlink -f "$(ldd /bin/sh | sed -n 's/^\s*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p')")
    cp -L "$loader" "$tree/lib/ld.so"
}

# ttyd (its libwebsockets) loads its event loop by name from a folder fixed at build time, or from
# LD_LIBRARY_PATH, which the user's shell would inherit. So the folder's name in the binary is replaced.
copy_event_loop() {
    local plugin
    plugin=$(compgen -G '/usr/lib/*/libwebsockets-evlib_uv.so')
    cp -L "$plugin" "$tree/lib/"
    copy_libraries_of "$plugin"
    python3 - "$(dirname "$plugin")" "$prefix/lib" "$tree/bin/ttyd" <<'PYTHON' ||
import sys
old, new, program = sys.argv[1:]
old, new = (b"\0" + old.encode() + b"\0", b"\0" + new.encode().ljust(len(old), b"\0") + b"\0")
data = open(program, "rb").read()
if data.count(old) != 1 or len(new) != len(old):
    sys.exit(1)
open(program, "wb").write(data.replace(old, new))
PYTHON
        die "this ttyd finds its event loop in an unknown way"
}

copy_python() {
    local version standard
    version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    standard=/usr/lib/$version
    copy_program python3
    mv "$tree/bin/python3" "$tree/bin/python"
    mkdir -p "$tree/lib/$version"
    tar -C "$standard" -cf - --exclude=__pycache__ --exclude=test --exclude=tests --exclude=idlelib \
        --exclude=tkinter --exclude=ensurepip --exclude=venv --exclude=pydoc_data --exclude=turtledemo \
        --exclude=lib2to3 --exclude='config-*' --exclude=EXTERNALLY-MANAGED --exclude=sitecustomize.py . |
        tar -C "$tree/lib/$version" -xf -
    rm -f "$tree/lib/$version"/lib-dynload/_{tkinter,test*,xxtestfuzz,ctypes_test,curses*,dbm,gdbm}*.so
    copy_libraries_of "$tree/lib/$version"/lib-dynload/*.so
}

# The node's GPU driver, which the runner's check loads, depends on these parts of older C libraries.
copy_parts_of_c_library() {
    local name
    for name in libdl.so.2 libpthread.so.0 librt.so.1; do
        cp -L "/usr/lib/$(uname -m)-linux-gnu/$name" "$tree/lib/"
    done
}

copy_runner() {
    cp -r "$source_dir/portal/node/runner" "$tree/runner"
    find "$tree/runner" -name __pycache__ -prune -exec rm -rf {} +
    # Without -m and site: every module that is not imported saves the user a millisecond.
    printf '%s\n' "#!$prefix/bin/python -IS" 'import sys' "sys.path.append(\"$prefix\")" \
        'from runner.__main__ import main' 'sys.exit(main())' > "$tree/bin/runner"
    printf '%s\n' "#!$prefix/bin/python -ISXutf8" 'import sys' "sys.path.append(\"$prefix\")" \
        'from runner.batch.command import main' 'main()' > "$tree/bin/command"
    printf '%s\n' "#!$prefix/bin/python -IS" 'import sys' "sys.path.append(\"$prefix\")" \
        'from runner.apps.ssh_listener import main' 'main(sys.argv[1:])' > "$tree/bin/ssh-listener"
    chmod 755 "$tree/bin/runner" "$tree/bin/command" "$tree/bin/ssh-listener"
    copy_slurm_clients
}

# Slurm's commands for batch jobs in images that know nothing of Slurm.
copy_slurm_clients() {
    local name
    mkdir "$tree/slurm"
    printf '%s\n' "#!$prefix/bin/python -ISXutf8" 'import sys' "sys.path.append(\"$prefix\")" \
        'from runner.batch.slurm_client import main' 'sys.exit(main())' > "$tree/bin/slurm-client"
    chmod 755 "$tree/bin/slurm-client"
    for name in sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue \
        sreport slipway srun sshare sstat strigger; do
        ln -s ../bin/slurm-client "$tree/slurm/$name"
    done
}

# Read by the image's own Jupyter and Python. The extension's script has its hash in its name, since all
# files have the same date, from which browsers conclude that they need not ask again.
copy_jupyter() {
    local extension script hash
    cp -r "$source_dir/images/toolkit/jupyter" "$source_dir/images/toolkit/python" "$tree"
    extension=$tree/jupyter/share/labextensions/@slipway/session
    script=$extension/static/remoteEntry
    hash=$(sha256sum "$script.js" | cut -c 1-16)
    mv "$script.js" "$script.$hash.js"
    sed -i "s/remoteEntry\.js/remoteEntry.$hash.js/" "$extension/package.json"
}

# Loaded by the image's own programs, so neither its loader nor its search path is the toolkit's.
copy_gpu_shim() {
    local library
    mkdir "$tree/gpu"
    make --silent -C "$source_dir/gres/shim" OUT="$work/shim" > "$work/shim.log" ||
        die "the GPU shim could not be built"
    for library in libcuda.so.1 libnvidia-ml.so.1; do
        install -m 755 "$work/shim/$library" "$tree/gpu/$library"
        strip --strip-unneeded "$tree/gpu/$library"
    done
}

# Programs for users of images that lack them; the rest of bin/ is not in their PATH.
offer_to_users() {
    mkdir -p "$tree/user/bin"
    local program
    for program in tmux rsync scp sftp-server; do
        ln -s "../../bin/$program" "$tree/user/bin/$program"
    done
}

make_terminal_page() {
    python3 "$source_dir/images/toolkit/terminal/make_page.py" "$(command -v ttyd)" "$tree/share/terminal.html"
}

# tmux needs a UTF-8 locale, and an image may have none, or one in another C library's format. So our
# C library uses the toolkit's own; as with the event loop, no variable can leak to users.
copy_locale() {
    mkdir "$tree/lo"
    cp -rL /usr/lib/locale/C.utf8 "$tree/lo/"
    python3 - /usr/lib/locale "$prefix/lo" "$tree/lib/libc.so.6" <<'PYTHON' ||
import sys
old, new, library = sys.argv[1:]
data = open(library, "rb").read()
if old.encode() not in data or len(new) != len(old):
    sys.exit(1)
open(library, "wb").write(data.replace(old.encode(), new.encode()))
PYTHON
        die "this C library finds its locales in an unknown way"
}

copy_terminfo() {
    local name
    for name in xterm xterm-256color screen screen-256color tmux tmux-256color linux vt100 dumb; do
        for place in /etc/terminfo /lib/terminfo /usr/share/terminfo; do
            if [[ -e $place/${name:0:1}/$name ]]; then
                install -D -m 644 "$(readlink -f "$place/${name:0:1}/$name")" \
                    "$tree/share/terminfo/${name:0:1}/$name"
                break
            fi
        done
    done
}

# shellcheck source=images/toolkit/desktop/build.sh
. "$source_dir/images/toolkit/desktop/build.sh"
install_packages
mkdir -p "$tree"/{bin,lib,share,etc}
copy_loader
for program in haproxy tmux ttyd openssl rsync; do copy_program "$program"; done
copy_ssh
copy_event_loop
copy_python
copy_parts_of_c_library
copy_runner
copy_jupyter
copy_gpu_shim
copy_locale
copy_terminfo
make_terminal_page
copy_xserver
make_desktop_page
copy_desktop_settings
offer_to_users
# Module paths must not depend on this machine: compiled with their final paths, and never compared
# with their sources again (the squashfs is read-only).
python3 -m compileall -q --invalidation-mode unchecked-hash -s "$tree" -p "$prefix" \
    "$tree/lib" "$tree/runner" || true
chown -R 0:0 "$tree"
chmod -R a+rX,go-w "$tree"
# Fixed timestamps, so that builds are reproducible. Not compressed: a few megabytes more to read, but
# nothing to unpack while a user waits (measured: 20 ms of the runner's start).
# shellcheck disable=SC2086  # several options
mksquashfs "$tree" "$work/toolkit.sqsh" -noappend -no-progress -quiet \
    -all-root -no-xattrs -all-time 0 -mkfs-time 0 \
    ${SLIPWAY_COMPRESSION:--noI -noD -noF -noX}
cp "$work/toolkit.sqsh" "$out.tmp"
# Behind the file system, where nothing else reads: `slipway check` compares it with its own release.
digest=$(cd "$tree/runner" && find . -name '*.py' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
printf 'slipway-runner %s\n' "$digest" >> "$out.tmp"
chmod 644 "$out.tmp"
mv "$out.tmp" "$out"
echo "Built $out ($(du -h "$out" | cut -f 1))"
