#!/bin/sh
# Slurm's Prolog on compute nodes with GPUs (slurm.conf: Prolog=/etc/slurm/prolog.sh).
# Writes the slice of a job with a GPU, as root, before any program of the user runs. It never fails,
# since that would drain the node. Without a slice the job's tasks do not start (spank_slipway.c).
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export PATH
slipway-gpu prolog || logger -t slipway-gpu "prolog of job ${SLURM_JOB_ID:-?} failed" 2> /dev/null
exit 0
