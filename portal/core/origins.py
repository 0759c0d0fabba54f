"""Where apps are found: each has an origin of its own, never the portal's.

An origin is named by its label: in the mode "ports" the number of a port of the pool, in the mode
"subdomains" a random name that is never used again. A session's SSH door is a port in both modes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Mode = Literal["ports", "subdomains"]
Range = tuple[int, int]
"""First and last port."""

BAD_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)
"""Ports that browsers refuse to connect to: the "bad ports" of the Fetch standard, section "Port
blocking" (https://fetch.spec.whatwg.org/#port-blocking), from 1024 on."""


def port_of(label: str) -> int | None:
    """The port that a label is; None for a random name, which is longer and may be all digits."""
    return int(label) if label.isdecimal() and len(label) <= 5 else None


@dataclass(frozen=True)
class Origins:
    """How labels and addresses belong together at this site."""

    scheme: str
    mode: Mode
    host: str
    """Host name of the pool's ports, or the domain above the subdomains."""
    port: int | None
    """Port of the subdomains' addresses; None is the scheme's own."""
    ports: Range
    ssh_ports: Range

    def url(self, label: str) -> str:
        """The origin with this label."""
        if self.mode == "ports":
            return f"{self.scheme}://{self.host}:{label}"
        return f"{self.scheme}://{label}.{self.host}" + (f":{self.port}" if self.port else "")

    def label_at(self, host: str) -> str | None:
        """The label of the origin with this host name and port; None where no app can be."""
        host = host.lower()
        if self.mode == "ports":
            name, _, label = host.rpartition(":")
            there = name == self.host.lower() and self.fits(label, "web")
            return label if there else None
        label, dot, domain = host.partition(":")[0].partition(".")
        return label if label and dot and domain == self.host.lower() else None

    def pool(self, kind: str) -> Range | None:
        """The ports that apps of this kind share; None where they have names instead."""
        if kind == "ssh":
            return self.ssh_ports
        return self.ports if self.mode == "ports" else None

    def usable(self, kind: str) -> list[int]:
        """The ports of the pool that an app of this kind may have: browsers refuse some."""
        first, last = self.pool(kind) or (0, -1)
        return [port for port in range(first, last + 1) if self.fits(str(port), kind)]

    def fits(self, label: str, kind: str) -> bool:
        """Whether the label is one that this site still serves, and browsers reach."""
        pool, port = self.pool(kind), port_of(label)
        if pool is None or port is None:
            return pool is None and port is None
        return pool[0] <= port <= pool[1] and (kind == "ssh" or port not in BAD_PORTS)


@dataclass(frozen=True)
class PortUse:
    """Who had a port last, and when."""

    owner: str
    used: datetime


def choose_port(
    ports: Collection[int],
    taken: Collection[int],
    memory: Mapping[int, PortUse],
    owner: str,
    preferred: int | None,
    choose: Callable[[list[int]], int],
) -> int | None:
    """A free one of these ports: the preferred one, else any; None when all are taken.

    Browsers keep things by origin (caches, storage), so a port goes to somebody else only when
    there is none that is new or was this owner's last, and then the one unused for longest.
    `choose` picks one of several: chance in life, not in tests.
    """
    free = [port for port in ports if port not in taken]
    if preferred in free:
        return preferred
    own = [port for port in free if port not in memory or memory[port].owner == owner]
    if own:
        return choose(own)
    return min(free, key=lambda port: memory[port].used, default=None)
