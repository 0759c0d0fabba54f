"""Only the portal's own processes can use the portal's sockets (L2)."""

from __future__ import annotations

from tests.support.cluster import Cluster

NEIGHBOUR = """
import socket, sys
door = socket.socket(socket.AF_UNIX)
try:
    door.connect(sys.argv[1])
except PermissionError:
    print("refused")
else:
    door.sendall(b"GET /runner/v1/sessions/x/ready HTTP/1.1\\r\\nHost: portal\\r\\n"
                 b"X-Slipway-Frontend: runners\\r\\nConnection: close\\r\\n\\r\\n")
    print(door.recv(100))
"""


def _sockets(cluster: Cluster) -> dict[str, str]:
    """Path and mode of every socket in the portal's folders."""
    found = cluster.shell(
        "portal", "find /run/slipway /var/lib/slipway /dev/shm -type s -printf '%p %m %u\\n'"
    )
    return {line.split()[0]: line.partition(" ")[2] for line in found.splitlines()}


def test_sockets_are_accessible_to_the_portal_only(cluster: Cluster) -> None:
    """L2: 0600 in a folder of 0700, whatever umask gunicorn uses."""
    found = _sockets(cluster)
    assert "/run/slipway/portal.sock" in found
    assert set(found.values()) == {"600 slipway"}, found
    folder = cluster.run("portal", "stat", "--format", "%a %U", "/run/slipway").strip()
    assert folder == "700 slipway"


def test_other_accounts_of_the_host_cannot_reach_gunicorn(cluster: Cluster) -> None:
    """L2: a client of that socket would be trusted like HAProxy, with any forged address."""
    command = ["setpriv", "--reuid", "nobody", "--clear-groups", "python3", "-c", NEIGHBOUR]
    for path in _sockets(cluster):
        output = cluster.run("portal", *command, path, check=False).strip()
        assert output == "refused", (path, output)
