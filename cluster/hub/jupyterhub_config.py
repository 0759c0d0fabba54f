"""JupyterHub in the embedded cluster: Slipway's spawner and authenticator, with few lines more."""

import os

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.JupyterHub.spawner_class = "slipway"
c.JupyterHub.authenticator_class = "slipway"
c.SlipwaySpawner.portal_url = os.environ["SLIPWAY_PORTAL"]
c.SlipwaySpawner.servers_url = "http://portal:8090"
c.SlipwayAuthenticator.portal_url = os.environ["SLIPWAY_PORTAL"]
c.SlipwaySpawner.verify = c.SlipwayAuthenticator.verify = os.environ.get("SLIPWAY_CA", "")

# The portal knows the accounts.
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}
c.JupyterHub.allow_named_servers = True
# Servers go on while JupyterHub restarts.
c.JupyterHub.cleanup_servers = False

c.JupyterHub.bind_url = "http://:8000"
# Servers on the nodes ask JupyterHub who their users are.
c.JupyterHub.hub_bind_url = "http://:8081"
c.JupyterHub.hub_connect_url = "http://hub:8081"
c.JupyterHub.db_url = "sqlite:////var/lib/jupyterhub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/var/lib/jupyterhub/cookie_secret"  # noqa: S105
c.ConfigurableHTTPProxy.pid_file = "/run/jupyterhub-proxy.pid"
