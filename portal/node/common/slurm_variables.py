"""Environment variables of users that change the behaviour of Slurm's commands.

They override a script's directives and a command's default output.
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
"""Prefixes of variables that one command reads."""
ANY = "SLURM_"
"""Prefix of variables that several commands read, and srun in a job."""
OF_THE_SITE = ("SLURM_CONF", "SLURM_CONF_SERVER")
"""Variables that select the cluster: never removed."""
OF_SBATCH = (
    "SLURM_CLUSTERS",
    "SLURM_DEBUG_FLAGS",
    "SLURM_EXIT_ERROR",
    "SLURM_HINT",
    "SLURM_JWT",
    "SLURM_TIME_FORMAT",
    "SLURM_UMASK",
)
"""Variables with the prefix ANY that sbatch reads."""


def changes_sbatch(name: str) -> bool:
    """Whether a variable changes what sbatch submits; those for srun in the job do not."""
    return name.startswith(COMMANDS) or name in OF_SBATCH
