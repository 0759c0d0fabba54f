#!/bin/bash
#SBATCH --job-name=0123456789abcdef0123456789abcdef
#SBATCH --comment=slipway:0123456789abcdef0123456789abcdef
#SBATCH --output=.slipway/logs/0123456789abcdef0123456789abcdef.log
#SBATCH --export=NIL
#SBATCH --no-requeue
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=600M
# A Slipway session. It starts in the user's home directory, which contains the folder that the portal
# has prepared, and deletes that folder at its end.
export PATH=/usr/local/bin:/usr/bin:/bin
session=$PWD/.slipway/sessions/0123456789abcdef0123456789abcdef
scratch=
# Not if anything is mounted below it outside the container: deleting would reach into the mount.
trap 'grep -qE "^([^ ]+ ){4}[^ ]*/0123456789abcdef0123456789abcdef/" /proc/self/mountinfo || rm -rf -- "$session"
[[ -z $scratch ]] || rm -rf --one-file-system -- "$scratch"' EXIT
# The portal finds this line at the end of the log and shows it.
fail() { printf 'Slipway: %s\n' "$1"; exit 70; }

[[ -r $session/spec.json ]] || fail "its instructions are gone. Launch it again."
# From here on, the secret is only in the open file.
exec 3< "$session/spec.json"
rm -f -- "$session/spec.json"
# The portal keeps the user's public SSH key in "ssh"; no session contains the private key.
keys=$PWD/.slipway/ssh
mkdir -p -m 700 -- "$session/home" "$session/tmp" "$keys" ||
    fail "its folder could not be created; your home directory may be full."
# Temporary files have the node's space: where the site says (TMPDIR, which its prolog may set; Slurm's own
# value is /tmp), or in the first of these that is on a disk, since memory would be the session's own.
for base in "${TMPDIR:-/tmp}" /tmp /var/tmp "$session"; do
    [[ $base == "${TMPDIR:-}" && $base != /tmp || $(stat -fLc %T -- "$base" 2>/dev/null) != tmpfs ]] || continue
    # Where others could exchange our folder, it would be theirs.
    [[ -O $base || -k $base ]] || continue
    scratch=$(mktemp -d -- "$base/slipway-session.XXXXXXXXXX" 2>/dev/null) && break
done
{ mkdir -m 700 -- "$scratch/tmp" "$scratch/var_tmp" && exec 4< "$scratch"; } 2>/dev/null ||
    fail "there is no space for temporary files on $SLURMD_NODENAME, nor in your home directory."
# Sessions that were killed could not delete theirs, and no longer hold the lock. NFS has none for folders, and
# Lustre may have none at all: then nothing is deleted.
flock -n 4 2>/dev/null
find "$base" -maxdepth 1 -type d -name 'slipway-session.*' -user "$UID" -mmin +1 \
    -exec flock -n {} rm -rf --one-file-system -- {} \; 2>/dev/null 3<&- 4<&- &
# If Apptainer is a site module, the login environment finds it.
hash apptainer 2>/dev/null || . /etc/profile
hash apptainer 2>/dev/null ||
    fail "Apptainer was not found on $SLURMD_NODENAME. Tell the administrators."
[[ -r /srv/slipway/toolkit.sqsh ]] ||
    fail "Slipway's own programs cannot be read on $SLURMD_NODENAME (/srv/slipway/toolkit.sqsh). Tell the administrators."
[[ -r /srv/slipway/images/python/3.13/image.sif ]] ||
    fail "its image cannot be read on $SLURMD_NODENAME (/srv/slipway/images/python/3.13/image.sif). Tell the administrators."

binds=()
bind_folder() {
    local source=${1//\"/\"\"} target=${2//\"/\"\"}
    binds+=(--mount "type=bind,\"src=$source\",\"dst=$target\"$3")
}

bind_folder "$scratch/tmp" /tmp ""
bind_folder "$scratch/var_tmp" /var/tmp ""
# In the home, where the portal finds the runner's proof of whose session it is.
bind_folder "$session/tmp" /opt/slipway-proof ""

# Kernels must not open TCP ports on the shared node, whatever starts them: every Python reads this. The
# counterpart, by which they get unix sockets, is in every app's environment (images/toolkit/python).
guard='runpy.run_path("/opt/slipway/jupyter/kernel.py", run_name="slipway_kernel")["guard"]()'
printf '%s\n' "import runpy" "" "$guard" 2>/dev/null > "$session/kernels.py" ||
    fail "its files could not be written; your home directory may be full."
bind_folder "$session/kernels.py" /usr/local/etc/ipython/ipython_kernel_config.py ,ro

# --- the job's own cgroup, mounted in the container under /sys/fs/cgroup -----------------------------
declare -A own_path mount_point mount_root

bind_cgroup() { binds+=(--mount "type=bind,\"src=$1\",\"dst=$2\",ro"); }

# v2 has one line without a name; v1 names the controllers of each line.
read_cgroups() {
    local names path root point rest name
    while IFS=: read -r _ names path; do
        for name in ${names//,/ } ${names:-v2}; do own_path[${name##*,}]=$path; done
    done < /proc/self/cgroup
    while read -r _ _ _ root point rest; do
        case $rest in
            *' - cgroup2 '*) names=v2 ;;
            *' - cgroup '*) names=${rest##* } ;;
            *) continue ;;
        esac
        for name in ${names//,/ }; do mount_point[$name]=$point mount_root[$name]=$root; done
    done < /proc/self/mountinfo
}

# Sets `folder` to this job's folder of a controller; a mount may begin below the root.
find_folder() {
    [[ -n ${own_path[$1]:-} && -n ${mount_point[$1]:-} ]] || return 1
    local path=${own_path[$1]}
    [[ ${mount_root[$1]} == / ]] || path=${path#"${mount_root[$1]}"}
    folder=${mount_point[$1]}${path%/}
    [[ $folder != "${mount_point[$1]}" && -d $folder ]]
}

# Sets `folder` to the nearest ancestor with a memory limit: its level differs between Slurm's versions
# and between cgroup v1 and v2.
find_limit() {
    local value
    find_folder "$1" || return 1
    while [[ $folder == "${mount_point[$1]}"/* ]]; do
        value=
        read -r value 2>/dev/null < "$folder/$2"
        # In v1, "unlimited" is nearly 2^63.
        [[ $value =~ ^[0-9]+$ && $value -lt 4611686018427387904 ]] && return 0
        folder=${folder%/*}
    done
    return 1
}

read_cgroups
if [[ -n ${own_path[memory]:-} ]]; then
    level=
    if find_limit memory memory.limit_in_bytes; then
        level=${folder#"${mount_point[memory]}"}
        bind_cgroup "$folder" "${mount_point[memory]}"
    fi
    for controller in cpuset cpuacct; do
        find_folder "$controller" || continue
        [[ -n $level && -d ${mount_point[$controller]}$level ]] && folder=${mount_point[$controller]}$level
        bind_cgroup "$folder" "${mount_point[$controller]}"
    done
elif find_limit v2 memory.max || find_folder v2; then
    bind_cgroup "$folder" "${mount_point[v2]}"
fi

# --- the mounted folders ------------------------------------------------------------------------------
# Each is mounted on an empty folder in the session's own home, and only in the container's mount
# namespace: outside, that folder stays empty, so deleting the session's home never touches the mount.
# Of other users' folders: what the runner must find where they are mounted.
seen=()
mount_folder() {
    local name=$1 source=$2 mode=$3 owner=${4:-} base=$PWD real identity
    if [[ $source == /* ]]; then base=${source%/*}; else source=$PWD/$source; fi
    [[ -z $owner ]] || check_shared "$owner" "$source"
    [[ -d $source ]] || fail "the folder \"$name\" no longer exists. Launch without it, or create it again."
    [[ -r $source && -x $source ]] || fail "you may not read the folder \"$name\". Launch without it."
    real=$(cd -P -- "$source" && pwd -P)
    [[ $real -ef $source ]] || fail "the folder \"$name\" cannot be found. Launch without it."
    is_storage "$real" "$base" ||
        fail "the folder \"$name\" leads to ${real//[^[:print:]]/?}, which is neither yours nor storage. Launch without it."
    mkdir -p -- "$session/home/$name" || fail "its home could not be created; your home directory may be full."
    mount_at "$real" "/home/alice/$name" "$mode"
    must_be "/home/alice/$name"
}

must_be() { [[ -z $owner ]] || seen+=(--seen "$identity $1"); }

# A folder of another user's: its owner may take it back at any moment, or put something else in its place,
# even while it is being mounted. What is mounted stays, so the runner compares it with what was seen here.
check_shared() {
    local uid
    read -r uid identity < <(stat -c '%u %d:%i' -- "$2" 2>/dev/null)
    [[ -d $2 && ! -L $2 && -r $2 && -x $2 && $uid == $(id -u -- "$1") ]] ||
        fail "the folder \"$1/${2##*/}\" is no longer shared with you. Launch without it."
}

mount_at() {
    bind_folder "$1" "$2" "$3"
    [[ -z $3 ]] || freeze_below "$1" "$2"
    hide_own "$1" "$2"
}

# A folder may be a link: to a target that the user owns or may write to, such as a project's folder, or
# to another file system, such as shared data. The node's system folders and Slipway's folder are not
# storage.
is_storage() {
    local real=$1 base
    [[ $real/ != "$own_folder"/* && ! $real -ef $own_folder ]] || return 1
    base=$(cd -P -- "$2" && pwd -P)
    [[ $real/ != "$base"/* ]] || return 0
    case ${real%/}/ in
        / | /bin/* | /boot/* | /dev/* | /etc/* | /lib/* | /lib32/* | /lib64/* | /proc/* | /root/* | /run/* | \
            /sbin/* | /sys/* | /usr/* | /var/*) return 1 ;;
    esac
    # A folder that everybody may write to, such as /tmp, does not count as writable.
    [[ -O $real || -w $real && ! -k $real || $(stat -c %d -- "$real") != $(stat -c %d /) ]]
}

# Hides Slipway's own folder, which contains secrets, inside a mounted folder. A link to it leads nowhere
# unless its target is mounted, and then that is hidden.
hide_own() {
    local hidden
    if [[ $own_folder == "$1"/* ]]; then
        hidden=${own_folder#"$1"/}
    elif [[ $1/.slipway -ef $own_folder && ! -L $1/.slipway ]]; then
        hidden=.slipway
    else
        return 0
    fi
    mkdir -p -m 500 -- "$session/nothing"
    bind_folder "$session/nothing" "$2/$hidden" ,ro
}

# "Read-only" does not apply to other mounts below a folder: each of them is made read-only as well.
freeze_below() {
    local real point
    real=$(cd -P -- "$1" && pwd -P)
    while read -r _ _ _ _ point _; do
        printf -v point %b "$point"
        [[ $point == "$real"/* && -e $point ]] && bind_folder "$point" "$2/${point#"$real"/}" ,ro
    done < /proc/self/mountinfo
}

own_folder=$(cd -P -- "$PWD/.slipway" && pwd -P)
mount_folder home . ,ro
mount_folder data storage/data ""
mount_folder maps-2.1 /srv/storage/alice/maps-2.1 ,ro
mount_folder results ~bob/storage/results ,ro bob
mount_folder carol-data /srv/storage/carol/data "" carol

# --- the container ------------------------------------------------------------------------------------
# The runner's and the apps' sockets are in memory of their own, which nobody's files fill.
apptainer --silent exec --containall \
    --home "$session/home":/home/alice \
    --scratch /opt/slipway-run \
    --bind /srv/slipway/toolkit.sqsh:/opt/slipway:image-src=/ \
    --bind "$keys":/opt/slipway-ssh:ro \
    "${binds[@]}" /srv/slipway/images/python/3.13/image.sif \
    /opt/slipway/bin/runner --directory /opt/slipway-run --job-id "$SLURM_JOB_ID" \
    --node "$SLURMD_NODENAME" "${seen[@]}" <&3 3<&- 4<&- &
container=$!
exec 3<&-

# Slurm signals every process of the job; a signal to this script alone has the same effect.
asked=
trap 'asked=yes; kill -TERM "$container" 2>/dev/null' TERM INT HUP
while wait "$container"; code=$?; [[ -n $asked ]] && kill -0 "$container" 2>/dev/null; do :; done
[[ -n $asked ]] && exit 0
exit "$code"
