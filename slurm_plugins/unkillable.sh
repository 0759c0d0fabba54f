#!/bin/sh
# Slurm's UnkillableStepProgram on all compute nodes (slurm.conf:
# UnkillableStepProgram=/etc/slurm/unkillable.sh).
# Aborts the FUSE connections for which a step's processes wait and cannot be killed. Slurm drains the node
# whatever it does; health.sh, which lies beside it, resumes the node then.
exec /bin/sh "$(dirname "$0")/health.sh" unkillable
