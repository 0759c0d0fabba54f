#!/usr/bin/env bash
# A virtual machine with Debian's own kernel and cgroup v2 only, in which the cluster's containers run as
# machines: ctl, login, n1 and portal, each with namespaces of its own and the same start scripts.
#
#   tests/cgroup2/machine.sh build          kernel, images and disk of the Slurm version SLURM
#   tests/cgroup2/machine.sh start          boots it in the background; the portal gets PORT
#   tests/cgroup2/machine.sh exec NAME -- … a command in one of the machines
#   tests/cgroup2/machine.sh console        what the kernel and the daemons have printed
#   tests/cgroup2/machine.sh stop
# shellcheck source-path=SCRIPTDIR/../..
set -euo pipefail
export COMPOSE_PROJECT_NAME=slipway-cgroup2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. cluster/lib.sh
. cluster/site.sh
. cluster/install.sh
. cluster/build.sh
. cluster/software.sh
. cluster/start.sh

HERE=$REPO_DIR/tests/cgroup2
WORK=$CACHE_DIR/cgroup2
KERNEL=$WORK/kernel
DISK=$WORK/disk-$SLURM.ext4
STATE=$WORK/running
# What the image needs before its own file system is there, and what the containers need later.
MODULES=(virtio_pci virtio_blk virtio_net ext4 bridge veth fuse squashfs loop overlay)

# --- kernel --------------------------------------------------------------------------------------

# Downloaded and unpacked only; this machine's own kernel is not changed.
build_kernel() {
    local package
    [ ! -s "$KERNEL/modules" ] || return 0
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
    rm -rf "$KERNEL" && mkdir -p "$KERNEL/unpacked"
    (cd "$KERNEL" && apt-get -o APT::Sandbox::User=root download -qq "$package")
    dpkg-deb --extract "$KERNEL"/*.deb "$KERNEL/unpacked"
    mv "$KERNEL"/unpacked/boot/vmlinuz-* "$KERNEL/vmlinuz"
    pack_modules
    rm -rf "$KERNEL/unpacked" "$KERNEL"/*.deb
}

# pack FOLDER: an archive as the kernel reads it at its start, where several may follow one another.
pack() { (cd "$1" && find . -print0 | cpio --null --create --format=newc --quiet --owner=0:0); }

pack_modules() {
    local tree=$KERNEL/initrd.d version file module number=100
    version=$(basename "$(echo "$KERNEL"/unpacked/*lib/modules/*)")
    [ -d "$KERNEL/unpacked/lib" ] || ln -s usr/lib "$KERNEL/unpacked/lib"
    depmod --basedir "$KERNEL/unpacked" "$version"
    mkdir -p "$tree"/{bin,modules,proc,dev,root}
    cp "$(command -v busybox)" "$tree/bin/busybox"
    for module in "${MODULES[@]}"; do
        while read -r file; do
            number=$((number + 1))
            cp "$file" "$tree/modules/$number-$(basename "$file")"
        done < <(modprobe --dirname "$KERNEL/unpacked" --set-version "$version" --show-depends "$module" |
            awk '$1 == "insmod" { print $2 }')
    done
    xz --decompress --quiet "$tree"/modules/*.xz 2> /dev/null || true
    pack "$tree" > "$KERNEL/modules.new"
    rm -rf "$tree"
    mv "$KERNEL/modules.new" "$KERNEL/modules"
}

# The modules and the scripts of folder guest, so that a changed line needs no new disk.
make_initrd() {
    local tree=$STATE/initrd.d
    mkdir -p "$tree/guest"
    cp "$HERE"/guest/* "$tree/guest/"
    mv "$tree/guest/initrd" "$tree/init"
    cat "$KERNEL/modules" <(pack "$tree") > "$STATE/initrd"
    rm -rf "$tree"
}

# --- disk ----------------------------------------------------------------------------------------

build_images() {
    mkdir -p "$PROJECT_DIR" "$CLUSTER_SOFTWARE"
    install_missing
    collect_site
    write_passwords
    ensure_base trixie
    build_cluster_images
    build_portal_image
    build_toolkit
    build_session_image "$FIRST_IMAGE"
}

# The images' ids and our own files; the disk is built again only if one of them has changed.
inputs() {
    engine image inspect --format '{{.Id}}' "localhost/slipway-"{ctl,login,node}":$SLURM_TAG" \
        "localhost/slipway-portal:$SLIPWAY_CLONE"
    sha256sum "$CLUSTER_SOFTWARE"/.stamps/toolkit "$CLUSTER_PASSWORDS"
    readlink -f "$CLUSTER_SOFTWARE/images/$FIRST_IMAGE/image.sif"
}

# The login node's image is also the root of the virtual machine.
build_disk() {
    local tree=$WORK/tree now
    now=$(inputs)
    if [ ! -s "$DISK" ] || [ "$(cat "$DISK.inputs" 2> /dev/null)" != "$now" ]; then
        rm -rf "$tree" && mkdir -p "$tree"
        unpack "login:$SLURM_TAG" "$tree"
        unpack "ctl:$SLURM_TAG" "$tree/machines/ctl"
        unpack "node:$SLURM_TAG" "$tree/machines/n1"
        unpack "portal:$SLIPWAY_CLONE" "$tree/machines/portal"
        mkdir -p "$tree"/guest "$tree"/machines/login "$tree"/volumes/{keys,home,trust,hostkeys,passwords,software/images/"${FIRST_IMAGE%/*}"}
        cp "$CLUSTER_PASSWORDS" "$tree/volumes/passwords/demo-passwords"
        cp "$CLUSTER_SOFTWARE/toolkit.sqsh" "$tree/volumes/software/"
        cp -a "$CLUSTER_SOFTWARE/images/$FIRST_IMAGE" "$tree/volumes/software/images/${FIRST_IMAGE%/*}/"
        make_key "$tree"
        truncate --size 6G "$DISK.new"
        mkfs.ext4 -q -O ^has_journal -d "$tree" "$DISK.new"
        rm -rf "$tree"
        mv "$DISK.new" "$DISK"
        echo "$now" > "$DISK.inputs"
    fi
}

# unpack IMAGE FOLDER
unpack() {
    local container
    container=$(engine create "localhost/slipway-$1")
    mkdir -p "$2"
    engine export "$container" | tar -x -C "$2"
    engine rm "$container" > /dev/null
}

# The tests enter as root with this key, which exists on this disk only.
make_key() {
    [ -s "$WORK/key" ] || ssh-keygen -q -t ed25519 -N '' -C cgroup2 -f "$WORK/key"
    install -m 700 -d "$1/root/.ssh"
    install -m 600 "$WORK/key.pub" "$1/root/.ssh/authorized_keys"
}

# --- the machine ---------------------------------------------------------------------------------

# Software emulation unless KVM really runs a guest: /dev/kvm alone says nothing about the processor.
acceleration() {
    if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
        echo -accel kvm -cpu host
    else
        echo -accel tcg,thread=multi -cpu max
    fi
}

start() {
    local options ssh_port
    [ ! -s "$STATE/pid" ] || stop
    rm -rf "$STATE" && mkdir -p "$STATE"
    ssh_port=$(free_port)
    make_initrd
    echo "$ssh_port" > "$STATE/ssh-port"
    # Changes are lost with the machine, so that every run begins with the same disk.
    read -ra options <<< "$(acceleration)"
    nice -n 15 qemu-system-x86_64 "${options[@]}" -smp 2 -m 4G -display none -no-reboot \
        -kernel "$KERNEL/vmlinuz" -initrd "$STATE/initrd" -serial "file:$STATE/console" \
        -append "console=ttyS0 quiet panic=-1 systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all slipway.url=$PUBLIC_URL" \
        -drive "file=$DISK,format=raw,if=virtio,snapshot=on" \
        -netdev "user,id=net,net=10.213.77.0/24,host=10.213.77.2,restrict=on,hostfwd=tcp:127.0.0.1:$PORT-10.213.77.30:8080,hostfwd=tcp:127.0.0.1:$ssh_port-10.213.77.3:22" \
        -device virtio-net-pci,netdev=net -device virtio-rng-pci \
        < /dev/null > "$STATE/qemu.log" 2>&1 9>&- &
    echo $! > "$STATE/pid"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# exec_in NAME -- COMMAND…
exec_in() {
    local command
    command=$(printf '%q ' "$1" "${@:3}")
    exec ssh -q -F none -i "$WORK/key" -p "$(cat "$STATE/ssh-port")" -o BatchMode=yes -o ConnectTimeout=120 \
        -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ServerAliveInterval=60 \
        root@127.0.0.1 "/guest/inside $command"
}

stop() {
    [ ! -s "$STATE/pid" ] || kill "$(cat "$STATE/pid")" 2> /dev/null || true
    rm -f "$STATE/pid"
}

become_root "$@"
choose_engine
case ${1:-} in
    build) build_images; build_kernel; build_disk ;;
    start) start ;;
    exec) shift; exec_in "$@" ;;
    console) cat "$STATE/console" ;;
    stop) stop ;;
    *) sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
