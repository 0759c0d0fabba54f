"""What a portal at the size of a centre serves, and what breaks first.

    python -m bench.centre [--parts worker,class,…] [--jobs 50000] [--sessions 1000] [--remove]

runs on the cluster that SLIPWAY_PROJECT and PORT name, which nothing else may use meanwhile: it
adds accounts, emulated nodes, queued and running jobs, sessions and routes to it, and keeps them
for the next run, until --remove. Slurm is the cluster's own. The clients run on this machine, in
the network of the portal's container, each with an address of its own, and do what browsers and
runners do.

Printed: counts and shares of processor time, and at the end those that miss what is wanted. Times
of answers depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import secrets
import time
from dataclasses import fields

from bench.centre.parts import PARTS, Campaign, line
from bench.centre.site import Site, Size
from tests.support.cluster import Cluster


def main() -> None:
    """Prepare, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="parts, in this order")
    parser.add_argument("--remove", action="store_true", help="remove all of it from the cluster")
    parser.add_argument("--tabs", type=int, default=1000, help="open tabs, four of each person")
    for each in fields(Size):
        parser.add_argument(f"--{each.name}", type=int, default=each.default)
    options = parser.parse_args()
    size = Size(**{each.name: getattr(options, each.name) for each in fields(Size)})
    site = Site(Cluster.from_environment(), size, secrets.token_urlsafe(12))
    if options.remove:
        site.remove()
        return
    began = time.monotonic()
    site.prepare()
    print(f"prepared in {time.monotonic() - began:.0f} s: {size}", flush=True)
    campaign = Campaign(site, options.tabs)
    for name in options.parts.split(","):
        PARTS[name](campaign)
    print(f"\nmissed, after {time.monotonic() - began:.0f} s:")
    for row in campaign.rows:
        if not row.fine:
            print(line(row))


if __name__ == "__main__":
    main()
