"""JupyterHub with batchspawner, as its README says; a server's options choose the tuned variant."""

import os
import shlex

# Imported for its handler of the port, too, as its README asks.
import batchspawner  # type: ignore[import-not-found]

IMAGE = "/srv/slipway/images/python/3.13/image.sif"
# Its whole path: batchspawner exports only the variables of JupyterHub, so srun has no PATH.
IN_IMAGE = (
    "/usr/bin/apptainer --silent exec --bind /home/batchspawner:/opt/batchspawner "
    f"--env PYTHONPATH=/opt/batchspawner {IMAGE} python3 -m batchspawner.singleuser"
)
# Created in the script's first line of its own: when Slurm has started it.
MARK = 'mkdir -p "$HOME/.peer/$SLURM_JOB_ID"'
# With all variables of sbatch, which has JupyterHub's alone: if there is a list of names, Slurm
# gathers the login environment on the node first.
TUNED_SCRIPT = """#!/bin/bash
#SBATCH --output={{homedir}}/.peer/log --job-name=spawner-jupyterhub --chdir={{homedir}}
#SBATCH --export=ALL
#SBATCH --time={{runtime}} --mem={{memory}} --cpus-per-task={{nprocs}}
{{prologue}}
exec {{cmd}}
"""

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.JupyterHub.spawner_class = batchspawner.SlurmSpawner
c.BatchSpawnerBase.req_nprocs = "1"
c.BatchSpawnerBase.req_memory = "1024"
c.BatchSpawnerBase.req_runtime = "1:00:00"
c.BatchSpawnerBase.req_prologue = MARK
c.BatchSpawnerBase.batchspawner_singleuser_cmd = IN_IMAGE
c.Spawner.http_timeout = 120


def tune(spawner: batchspawner.SlurmSpawner) -> None:
    """Set what the options of this start ask for: the defaults, or all that its settings allow."""
    options = spawner.user_options
    tuned = bool(options.get("tuned"))
    defaults = batchspawner.SlurmSpawner.class_traits()
    spawner.startup_poll_interval = 0.25 if tuned else defaults["startup_poll_interval"].default()
    spawner.batch_script = TUNED_SCRIPT if tuned else defaults["batch_script"].default()
    spawner.args = [shlex.quote(word) for word in options.get("arguments", [])]


c.Spawner.pre_spawn_hook = tune

c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.bind_url = "http://:8000"
c.JupyterHub.hub_bind_url = "http://:8081"
c.JupyterHub.hub_connect_url = f"http://{os.environ['PEER_ADDRESS']}:8081"
c.JupyterHub.db_url = "sqlite:////var/lib/jupyterhub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/var/lib/jupyterhub/cookie_secret"
c.ConfigurableHTTPProxy.pid_file = "/run/jupyterhub-proxy.pid"
