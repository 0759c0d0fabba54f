"""Environment variables that change the behaviour of Slurm's commands.

They override a script's directives and the default output of commands.
"""

from __future__ import annotations

COMMANDS = (
    "SACCT_",
    "SACCTMGR_",
    "SALLOC_",
    "SBATCH_",
    "SCANCEL_",
    "SCONTROL_",
    "SDIAG_",
    "SINFO_",
    "SPRIO_",
    "SQUEUE_",
    "SREPORT_",
    "SSHARE_",
    "SSTAT_",
    "STRIGGER_",
)
"""Prefixes of the variables of single commands."""
ANY = "SLURM_"
"""Prefix of the variables that several commands read, and of those that srun reads in a job."""
OF_THE_SITE = ("SLURM_CONF", "SLURM_CONF_SERVER")
"""Variables that select the cluster, which are never removed."""
OF_SBATCH = (
    "SLURM_CLUSTERS",
    "SLURM_DEBUG_FLAGS",
    "SLURM_EXIT_ERROR",
    "SLURM_HINT",
    "SLURM_JWT",
    "SLURM_TIME_FORMAT",
    "SLURM_UMASK",
)
"""The variables with prefix ANY that sbatch reads."""


def changes_sbatch(name: str) -> bool:
    """Whether a variable changes what sbatch submits; those for srun in the job do not."""
    return name.startswith(COMMANDS) or name in OF_SBATCH
