"""JupyterHub's side: a spawner and an authenticator over the portal's REST API.

They run inside JupyterHub, which need share neither a host nor a database with the portal.
"""

from pathlib import Path

from portal.hub.authenticator import SlipwayAuthenticator
from portal.hub.spawner import SlipwaySpawner

TEMPLATES = str(Path(__file__).parent / "templates")
"""For `c.JupyterHub.template_paths`: pages that explain how a server ended."""

__all__ = ["TEMPLATES", "SlipwayAuthenticator", "SlipwaySpawner"]
