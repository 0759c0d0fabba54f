"""Variables by which a user's environment would change what Slurm's commands do.

They win over a script's directives, and over what a command prints by default.
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
"""How the variables of a single command begin."""
ANY = "SLURM_"
"""How those begin that several commands read, and those that srun reads in a job."""
OF_THE_SITE = ("SLURM_CONF", "SLURM_CONF_SERVER")
"""Which cluster there is: never removed."""
OF_SBATCH = (
    "SLURM_CLUSTERS",
    "SLURM_DEBUG_FLAGS",
    "SLURM_EXIT_ERROR",
    "SLURM_HINT",
    "SLURM_JWT",
    "SLURM_TIME_FORMAT",
    "SLURM_UMASK",
)
"""What sbatch reads of those that begin with ANY."""


def changes_sbatch(name: str) -> bool:
    """Whether a variable changes what sbatch submits; those for srun in the job do not."""
    return name.startswith(COMMANDS) or name in OF_SBATCH
