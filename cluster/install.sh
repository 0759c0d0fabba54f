# shellcheck shell=bash
# Installs missing packages: a container engine with compose, and the tools of these scripts.

PODMAN_COMPOSE_VERSION=1.6.0

install_missing() {
    local packages=()
    command -v ip >/dev/null || packages+=(iproute2)
    command -v python3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
    if [ "$ENGINE" = podman ]; then
        command -v podman >/dev/null || packages+=(podman netavark aardvark-dns catatonit)
        command -v iptables >/dev/null || packages+=(iptables) # which of the two depends on netavark's version
        command -v nft >/dev/null || packages+=(nftables)
        command -v runc >/dev/null || command -v crun >/dev/null || packages+=(runc)
        on_cgroup_v2 || command -v runc >/dev/null || packages+=(runc)
    fi
    if [ ${#packages[@]} -gt 0 ]; then
        echo "installing: ${packages[*]}"
        apt_install "${packages[@]}"
    fi
    if [ "$ENGINE" = podman ]; then
        case $(podman --version) in
            *" "[123].*) echo "podman 4 or newer, or docker with its compose plugin, is needed"; return 1 ;;
        esac
        write_containers_conf
        install_podman_compose
    fi
    allow_user_namespaces
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -qq
    apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@"
}

install_podman_compose() {
    local python=$CACHE_DIR/venv/bin/python
    if ! "$python" -c "import importlib.metadata as m; assert m.version('podman-compose') == '$PODMAN_COMPOSE_VERSION'" 2>/dev/null; then
        python3 -m venv --clear "$CACHE_DIR/venv"
        "$python" -m pip install --quiet "podman-compose==$PODMAN_COMPOSE_VERSION"
    fi
}

# Ubuntu restricts unprivileged user namespaces, which Apptainer in the nodes needs.
allow_user_namespaces() {
    local switch=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
    if [ -e "$switch" ] && [ "$(cat "$switch")" != 0 ]; then
        echo "allowing user namespaces until the next reboot (kernel.apparmor_restrict_unprivileged_userns=0)"
        echo 0 > "$switch"
    fi
}
