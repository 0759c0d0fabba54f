"""What a user's program on a node may find of other users' sessions."""

from __future__ import annotations

from tests.support.client import Json
from tests.support.cluster import Cluster
from tests.support.paths import ROOT

HOSTILE_PROGRAM = (ROOT / "tests" / "attack" / "hostile.py").read_text()
ALICE_UID = 1001


def check_isolated(found: Json, gateway: int) -> None:
    """Fail if the program on the node found a way in, or a secret."""
    assert gateway in found["listening"], "alice's gateway is not listening"
    # A session opens a single TCP port, whatever its apps are.
    assert found["theirs"] == [gateway]
    # Root's daemons may answer (slurmd speaks HTTP from 26.05 on); they are not alice's.
    others = [answer for answer in found["others"] if "slurmd HTTP server" not in answer[3]]
    http_answers = [answer for answer in found["answers"] + others if "HTTP/" in answer[3]]
    assert not http_answers, http_answers
    # Over TLS not even a refusal in words; without it, at most TLS's own alert.
    assert not [answer for answer in found["answers"] if answer[1]], found["answers"]
    assert not found["stood_in"]
    assert not found["opened"]
    assert not [path for path in found["sockets"] if "slipway" in path or "jupyter" in path]
    assert not found["told"]
    assert not found["found"]


# The TCP ports on which alice's processes listen, as seen by root on the node.
LISTENING = """
import os
ports = {}
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
    for line in open(table).read().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            ports[fields[9]] = int(fields[1].rpartition(":")[2], 16)
found = set()
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        if os.stat("/proc/" + pid).st_uid != 1001:
            continue
        for name in os.listdir("/proc/%s/fd" % pid):
            link = os.readlink("/proc/%s/fd/%s" % (pid, name))
            if link[:8] == "socket:[" and link[8:-1] in ports:
                found.add(ports[link[8:-1]])
    except OSError:
        pass
print(*sorted(found))
"""


def ports_of_alice(cluster: Cluster, node: str) -> list[int]:
    """The TCP ports on which her processes listen there."""
    return [int(port) for port in cluster.run(node, "python3", "-c", LISTENING).split()]
