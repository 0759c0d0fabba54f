"""JupyterHub in the embedded cluster: Slipway's spawner and authenticator, with few lines more."""

import os

from jupyterhub import version_info

from portal.hub import TEMPLATES

c = get_config()  # type: ignore[name-defined]  # noqa: F821
ssl = bool(os.environ.get("SLIPWAY_HUB_CLIENT_CA"))
scheme = "https" if ssl else "http"

c.JupyterHub.spawner_class = "slipway"
c.JupyterHub.authenticator_class = "slipway"
c.SlipwaySpawner.portal_url = os.environ["SLIPWAY_PORTAL"]
c.SlipwaySpawner.servers_url = f"{scheme}://portal:8090"
c.SlipwayAuthenticator.portal_url = os.environ["SLIPWAY_PORTAL"]
c.SlipwaySpawner.verify = c.SlipwayAuthenticator.verify = os.environ.get("SLIPWAY_CA", "")
# Proves to the portal that it may count the clients that JupyterHub's proxy sees.
c.SlipwayAuthenticator.front_end_token_file = os.environ["SLIPWAY_HUB_FRONT_END_TOKEN_FILE"]
# Pages that tell how a server ended.
c.JupyterHub.template_paths = [TEMPLATES]

# The portal knows the accounts.
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}
c.JupyterHub.allow_named_servers = True
# Servers go on while JupyterHub restarts.
c.JupyterHub.cleanup_servers = False
# Servers that wait in Slurm's queue are starting, and there may be any number of them.
c.JupyterHub.concurrent_spawn_limit = 0

c.JupyterHub.bind_url = "http://:8000"
# Servers on the nodes ask JupyterHub who their users are.
c.JupyterHub.hub_bind_url = f"{scheme}://:8081"
c.JupyterHub.hub_connect_url = f"{scheme}://hub:8081"
c.JupyterHub.internal_ssl = ssl
c.JupyterHub.internal_certs_location = "/var/lib/jupyterhub/internal-ssl"
c.JupyterHub.trusted_alt_names = ["DNS:hub"]
# A database is upgraded to a newer JupyterHub and never back, so that `HUB=5.5` has one of its own.
c.JupyterHub.db_url = f"sqlite:////var/lib/jupyterhub/jupyterhub-{version_info[0]}.sqlite"
c.JupyterHub.upgrade_db = True
c.JupyterHub.cookie_secret_file = "/var/lib/jupyterhub/cookie_secret"  # noqa: S105
c.ConfigurableHTTPProxy.pid_file = "/run/jupyterhub-proxy.pid"
