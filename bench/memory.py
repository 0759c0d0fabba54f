"""The memory that Slipway itself uses per session: runner and gateway, beside the app.

    python -m bench.memory

runs on the cluster that SLIPWAY_PROJECT and PORT name, or on the one of `make up`. It starts a
session, opens its terminal, fetches a page through the complete route, and then reads the kernel's
figures for each process in the job's container.
"""

from __future__ import annotations

import json

from tests.support.client import Api, Visitor, login
from tests.support.cluster import Cluster

READ = r"""
import json, pathlib, re
found = []
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        rollup = (process / "smaps_rollup").read_text()
    except OSError:
        continue
    line = b" ".join(words).decode(errors="replace")
    if "/opt/slipway/" in line and "apptainer" not in line.lower():
        kb = [int(re.search(rf"^{name}: +(\d+)", rollup, re.M)[1]) for name in ("Rss", "Pss")]
        found.append([line[:60], *kb])
print(json.dumps(found))
"""


def main() -> None:
    """Measure and print."""
    cluster = Cluster.from_environment()
    api = Api(cluster, "alice", login(cluster, "alice"))
    try:
        session = api.launch(resources={"cpus": 1, "memory": "600m"})["id"]
        visitor = Visitor(api.ask("POST", f"/sessions/{session}/apps/terminal")["url"])
        visitor.enter()
        node = api.ask("GET", f"/sessions/{session}")["node"]
        processes = json.loads(cluster.run(node, "python3", "-", stdin=READ))
    finally:
        api.clean()
    print("  resident  proportional   (MB; a shared page counts once for all that share it)")
    for line, rss, pss in sorted(processes):
        print(f"{rss / 1024:10.1f}{pss / 1024:14.1f}   {line}")


if __name__ == "__main__":
    main()
