"""JupyterHub's side: a spawner and an authenticator over the portal's REST API.

They run inside JupyterHub, which need share neither a host nor a database with the portal.
"""

from portal.hub.authenticator import SlipwayAuthenticator
from portal.hub.spawner import SlipwaySpawner

__all__ = ["SlipwayAuthenticator", "SlipwaySpawner"]
