#!/bin/sh
# Slurm's Epilog on compute nodes with GPUs (slurm.conf: Epilog=/etc/slurm/epilog.sh).
# Deletes the job's slice. It never fails, since that would drain the node; the watchdog removes
# whatever is left.
[ -d "/run/slipway/gpu/jobs/${SLURM_JOB_ID:-none}" ] || exit 0
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export PATH
slipway-gpu epilog || logger -t slipway-gpu "epilog of job ${SLURM_JOB_ID:-?} failed" 2> /dev/null
exit 0
