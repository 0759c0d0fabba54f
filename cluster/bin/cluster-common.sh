# shellcheck shell=sh
# Start-up functions of all Slurm containers; sourced by the start-* scripts.

say() { echo "$(basename "$0"): $*"; }

# wait_until SECONDS COMMAND…  — tries five times a second; fails after that time.
wait_until() {
    tries=$(($1 * 5))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.2
    done
}

render_slurm_conf() {
    cpus=$(nproc)
    [ "$cpus" -le "${NODE_MAX_CPUS:-4}" ] || cpus=${NODE_MAX_CPUS:-4}
    sed -e "s/@CPUS@/$cpus/g" -e "s/@MEMORY@/${NODE_MEMORY:-3500}/g" \
        /etc/slurm/slurm.conf.in > /etc/slurm/slurm.conf
}

# The key is in a volume that only the Slurm containers share; ctl creates it once.
take_munge_key() {
    wait_until 60 test -s /run/cluster-keys/munge.key || { say "ctl has not created a munge key"; exit 1; }
    install -o munge -g munge -m 400 /run/cluster-keys/munge.key /etc/munge/munge.key
    install -d -o munge -g munge -m 755 /run/munge
}

make_homes() {
    for user in alice bob admin slipway slipway-operator; do
        [ -d "/home/$user" ] || install -d -o "$user" -g "$user" -m 700 "/home/$user"
    done
}
