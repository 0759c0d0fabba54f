# shellcheck shell=bash
# Shared by all scripts of the cluster: paths, settings and the container engine.
set -euo pipefail

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO_DIR=$(dirname "$CLUSTER_DIR")
CACHE_DIR=$CLUSTER_DIR/.cache

export COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-slipway}
export PORT=${PORT:-8080}
export SLURM=${SLURM:-24.11}
# Apps' origins: subdomains of apps.localhost, which browsers resolve themselves, or ports.
export APPS=${APPS:-subdomains}
# SESSION_HOME=persistent: sessions run in users' own home directories (sessions.home).
# HTTPS=1: TLS with a certificate that the portal's container creates (bin/make-certificate).
case ${HTTPS:-} in
    "" | 0 | no | off) export HTTPS='' SCHEME=http TLS_CERTIFICATE='' ;;
    *) export HTTPS=1 SCHEME=https TLS_CERTIFICATE=/var/lib/slipway/tls/site.pem ;;
esac
# As browsers write it: without the scheme's default port.
PUBLIC_URL=$SCHEME://localhost:$PORT
case $PUBLIC_URL in
    http:*:80 | https:*:443) PUBLIC_URL=${PUBLIC_URL%:*} ;;
esac
export PUBLIC_URL
# Images are tagged by the clone they were built from, so that two clones do not overwrite each other's.
SLIPWAY_CLONE=$(printf %s "$REPO_DIR" | sha256sum | cut -c1-8)
export SLIPWAY_CLONE SLURM_TAG=$SLURM-$SLIPWAY_CLONE
PROJECT_DIR=$CACHE_DIR/projects/$COMPOSE_PROJECT_NAME
export CLUSTER_SOFTWARE=$CACHE_DIR/software
# Debian base systems of the session images (see `slipway images build`).
# shellcheck disable=SC2034  # used where this is sourced
BASES_DIR=$CACHE_DIR/bases
if [ "$COMPOSE_PROJECT_NAME" = slipway ]; then
    export CLUSTER_PASSWORDS=$CLUSTER_DIR/.demo-passwords
else
    export CLUSTER_PASSWORDS=$PROJECT_DIR/demo-passwords
fi

# HUB=6.1 or HUB=5.5: a JupyterHub of this version in front of the portal, at its own port; with HTTPS=1,
# with its internal_ssl, whose certificates it gives to the portal.
case ${HUB:-} in
    "" | 0 | no | off) HUB='' ;;
    1 | yes | on) HUB=6.1 ;;
esac
export HUB HUB_PORT=${HUB_PORT:-8000} HUB_TAG=$HUB-$SLIPWAY_CLONE
export HUB_CERTIFICATE='' HUB_CLIENT_CA=''
[ -z "$HUB" ] || [ -z "$HTTPS" ] || HUB_CERTIFICATE=/etc/slipway/hub/servers.pem HUB_CLIENT_CA=/etc/slipway/hub/clients.pem
# HOSTS=2: a second portal host, at its own port, and a PostgreSQL that both use.
export HOSTS=${HOSTS:-1} DATABASE_URL=''
SERVICES=(ctl login n1 n2 portal ${HUB:+hub})
if [ "$HOSTS" = 2 ]; then
    export PORT2=${PORT2:-$((PORT + 1))}
    export PUBLIC_URL2=$SCHEME://localhost:$PORT2
    DATABASE_URL='postgresql+psycopg://slipway@database/postgres?passfile=/run/database/pgpass'
    # shellcheck disable=SC2034  # used where this is sourced
    SERVICES=(ctl login n1 n2 database portal portal2 ${HUB:+hub})
fi

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# All of this needs root: podman for the nodes' cgroups, docker usually as well.
become_root() {
    [ "$(id -u)" -ne 0 ] || return 0
    command -v sudo >/dev/null || fail "Please run this as root, or install sudo."
    exec sudo --preserve-env=PORT,HOSTS,PORT2,HUB,HUB_PORT,APPS,HTTPS,SESSION_HOME,SLURM,DEMO_PASSWORD,IMAGES,COMPOSE_PROJECT_NAME,NODE_MEMORY,NODE_MAX_CPUS,http_proxy,https_proxy,no_proxy \
        "$0" "$@"
}

on_cgroup_v2() { [ -e /sys/fs/cgroup/cgroup.controllers ]; }

can_raise_limits() { (ulimit -Hn 1048576) 2>/dev/null; }

# podman's settings for these containers only: without systemd, and without limits that this machine's
# kernel refuses.
write_containers_conf() {
    mkdir -p "$CACHE_DIR"
    {
        echo '[engine]'
        echo 'events_logger = "file"'
        echo 'cgroup_manager = "cgroupfs"'
        on_cgroup_v2 || echo 'runtime = "runc"' # crun refuses cgroup v1 beside v2
        echo '[containers]'
        echo 'cgroupns = "private"'
        echo 'log_driver = "k8s-file"'
        echo 'pids_limit = 0' # the nodes' jobs are limited by Slurm
        can_raise_limits || echo 'default_ulimits = ["nofile=16384:16384", "nproc=8192:8192"]'
    } > "$CACHE_DIR/containers.conf"
}

# docker if its daemon answers and it has compose, else podman.
choose_engine() {
    if [ -n "${ENGINE:-}" ]; then
        return
    elif timeout 10 docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then
        ENGINE=docker
    else
        ENGINE=podman
        [ -e "$CACHE_DIR/containers.conf" ] || write_containers_conf
        export CONTAINERS_CONF=$CACHE_DIR/containers.conf PODMAN_IGNORE_CGROUPSV1_WARNING=1
    fi
}

engine() { "$ENGINE" "$@"; }

compose() {
    export_network
    export_app_ports
    if [ "$ENGINE" = docker ]; then
        docker compose -f "$CLUSTER_DIR/compose.yaml" "$@"
    else
        "$CACHE_DIR/venv/bin/podman-compose" -f "$CLUSTER_DIR/compose.yaml" "$@"
    fi
}

# The /24 of this cluster, chosen once (see choose_network in start.sh).
export_network() {
    if [ -s "$PROJECT_DIR/network" ]; then
        CLUSTER_NET=$(cat "$PROJECT_DIR/network")
        export CLUSTER_NET
    fi
}

# The ports of this cluster's apps, chosen once (see choose_app_ports in start.sh).
export_app_ports() {
    local first
    if [ -s "$PROJECT_DIR/ports" ]; then
        first=$(cat "$PROJECT_DIR/ports")
        export APPS_PORTS=$first-$((first + 39)) SSH_PORTS=$((first + 40))-$((first + 49))
    fi
}

# The engine's id of a service's container; empty if there is none.
container_of() {
    engine ps --all --quiet \
        --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
        --filter "label=com.docker.compose.service=$1" | head -n 1
}

is_running() {
    [ -n "$(engine ps --quiet \
        --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
        --filter "label=com.docker.compose.service=$1")" ]
}

# A hash of the content of files and folders.
fingerprint() {
    (cd "$REPO_DIR" && find "$@" -type f ! -path '*/__pycache__/*' ! -path '*/node_modules/*' ! -path '*/static/built/*' -print0 |
        sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}
