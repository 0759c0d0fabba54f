"""A first session at a new portal: `first_launch.py URL ADDRESS CA USER PASSWORD`.

Logs in, launches a session, opens JupyterLab and runs a cell through HAProxy, ends the session.
ADDRESS is the portal's host, whatever name the URL and the apps have.
"""

from __future__ import annotations

import ssl
import sys
import time
from urllib.parse import urlsplit

from tests.support import client
from tests.support.apps import Kernel
from tests.support.cluster import Cluster

url, address, ca, user, password = sys.argv[1:]


class Portal(Cluster):
    """The portal of the package, in front of the cluster's Slurm."""

    def password(self, user: str) -> str:
        """The password that was given."""
        return password


def use_address() -> None:
    """Connect all names to the portal's host, and trust its certificate alone."""
    names = {
        "LOOPBACK": address,
        "authority": lambda: ca,
        "tls": lambda: ssl.create_default_context(cafile=ca),
    }
    for name, value in names.items():
        setattr(client, name, value)


def main() -> None:
    """The way of a first user."""
    use_address()
    started = time.monotonic()
    portal = Portal("", 0)
    portal.__dict__["url"] = url
    api = client.Api(portal, user, client.login(portal, user))
    session = api.running()["id"]
    print(f"- {session} runs after {time.monotonic() - started:.1f} s")
    try:
        visitor = api.open(session, "jupyterlab")
        place = urlsplit(visitor.origin).hostname
        kernel = Kernel(visitor)
        assert kernel.value("print(6 * 7)") == 42
        kernel.close()
        print(f"- JupyterLab answers at {place} after {time.monotonic() - started:.1f} s")
    finally:
        api.stop(session)
        api.wait_state(session, *client.OVER)


main()
