"""Where apps are found: each has an origin of its own, never the portal's.

An origin is named by its label: a random name below the apps' domain, which is its owner's for
ever, or the number of a port of the pool. A session's SSH door is a port in both modes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
    return int(label) if label.isdecimal() and label.isascii() and len(label) <= 5 else None


@dataclass(frozen=True)
class Origins:
    """How labels and addresses belong together at this site."""

    scheme: str
    mode: Mode
    """What an app gets unless its owner asks for a port."""
    domain: str
    """The domain above the subdomains."""
    pool_host: str
    """Host name of the pool's ports."""
    port: int | None
    """Port of the subdomains' addresses; None is the scheme's own."""
    ports: Range | None
    """The pool; in the mode "subdomains" there may be none."""
    ssh_ports: Range

    def url(self, label: str) -> str:
        """The origin with this label."""
        if port_of(label) is not None:
            return f"{self.scheme}://{self.pool_host}:{label}"
        return f"{self.scheme}://{label}.{self.domain}" + (f":{self.port}" if self.port else "")

    def patterns(self) -> list[str]:
        """The origins of all apps, as a Content-Security-Policy names them."""
        names = [f"{self.scheme}://*.{self.domain}" + (f":{self.port}" if self.port else "")]
        pool = [f"{self.scheme}://{self.pool_host}:*"] if self.ports else []
        return (names if self.mode == "subdomains" else []) + pool

    def label_at(self, host: str) -> str | None:
        """The label of the origin with this host name and port; None where no app can be."""
        host = host.lower()
        name, _, number = host.rpartition(":")
        if name == self.pool_host.lower() and self._in_pool(number, "web"):
            return number
        label, dot, domain = host.partition(":")[0].partition(".")
        there = self.mode == "subdomains" and domain == self.domain.lower()
        return label if label and dot and there else None

    def pool(self, kind: str) -> Range | None:
        """The ports that apps of this kind may have; None where there are none."""
        return self.ssh_ports if kind == "ssh" else self.ports

    def has_name(self, kind: str) -> bool:
        """Whether an app of this kind gets a name, unless its owner asks for a port."""
        return kind != "ssh" and self.mode == "subdomains"

    def usable(self, kind: str) -> list[int]:
        """The ports of the pool that an app of this kind may have: browsers refuse some."""
        first, last = self.pool(kind) or (0, -1)
        return [port for port in range(first, last + 1) if self._in_pool(str(port), kind)]

    def fits(self, label: str, kind: str) -> bool:
        """Whether the label is one that this site still serves, and browsers reach."""
        if port_of(label) is None:
            return self.has_name(kind)
        return self._in_pool(label, kind)

    def _in_pool(self, label: str, kind: str) -> bool:
        pool, port = self.pool(kind), port_of(label)
        if pool is None or port is None or str(port) != label:
            return False
        return pool[0] <= port <= pool[1] and (kind == "ssh" or port not in BAD_PORTS)


@dataclass(frozen=True)
class OriginUse:
    """What an origin is used for: the same files of the same image, for the same person."""

    owner: str
    environment: str
    version: str
    app: str


@dataclass(frozen=True)
class Origin:
    """What is remembered of an origin that may be used again."""

    label: str
    use: OriginUse
    """What it was used for last."""
    kept: bool
    """Whether the same use gets it again."""
    shared: bool
    """Whether somebody else had it before; what is open to everybody is never there."""
    mark: str
    """Changes with the use; "" until then. A browser that has seen another mark is cleared."""
    used: datetime
    """When it was taken, or left."""


@dataclass(frozen=True)
class OriginRequest:
    """Who looks for an origin, and for what."""

    use: OriginUse
    kind: str
    keep: bool
    """Whether the same use shall find it again."""
    open: bool
    """Whether the app may be opened to everybody."""


@dataclass(frozen=True)
class PortPolicy:
    """How ports are shared out."""

    per_person: int
    quarantine: timedelta
    """For how long a port stays its last owner's after it was left."""


@dataclass(frozen=True)
class KnownOrigins:
    """Which labels are in use, and what is remembered of those that may be used again."""

    taken: Collection[str]
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class OriginChoice:
    """What was chosen."""

    origin: Origin | None
    """None: the app stays where it is, or there is no place for it at all."""
    refused: str = ""
    """Why a port could not be had, in words for whoever wants it."""
    asked: bool = False
    """Whether a port was asked for: the app stays for a moment, as it is or where it goes."""


def occupy(
    known: Origin | None, label: str, seeker: OriginRequest, now: datetime, mark: str
) -> Origin:
    """The origin as it is once this use has begun; `mark` is a new random one."""
    if known is None:
        return Origin(label, seeker.use, seeker.keep, shared=False, mark="", used=now)
    if known.use == seeker.use:
        return replace(known, kept=seeker.keep, used=now)
    shared = known.shared or known.use.owner != seeker.use.owner
    return Origin(label, seeker.use, seeker.keep, shared=shared, mark=mark, used=now)


def choose_name(places: KnownOrigins, seeker: OriginRequest) -> str | None:
    """The name that this use had last and nobody has now; None: a new one is due."""
    own = [
        origin
        for origin in places.origins.values()
        if origin.use == seeker.use
        and origin.kept
        and port_of(origin.label) is None
        and origin.label not in places.taken
    ]
    newest = max(own, key=lambda origin: origin.used, default=None)
    return newest.label if newest and seeker.keep else None


class PortChooser:
    """Chooses ports of a pool for one seeker.

    Browsers keep things by origin (storage, caches, service workers), and tabs that were left open
    go on sending to it. So a port stays its last owner's for longer than any login lasts, whoever
    asks for it by name; an app that may be opened to everybody never has one that was ever
    somebody else's; and nobody holds more than so many, or one person could take all of them away.
    """

    def __init__(
        self,
        ports: Collection[int],
        places: KnownOrigins,
        seeker: OriginRequest,
        rules: PortPolicy,
        now: datetime,
    ) -> None:
        self._ports = ports
        self._places = places
        self._seeker = seeker
        # What sshd asks for does not depend on the port: its host key is the session's.
        self._quarantine = timedelta(0) if seeker.kind == "ssh" else rules.quarantine
        self._per_person = rules.per_person
        self._now = now
        self._held = {label for label in map(str, ports) if self._holds(label)}

    def _holds(self, label: str) -> bool:
        origin = self._places.origins.get(label)
        if origin is None or origin.use.owner != self._seeker.use.owner:
            return False
        return label in self._places.taken or not self._is_over(origin)

    def _is_over(self, origin: Origin) -> bool:
        return self._now - origin.used >= self._quarantine

    def refusal(self, port: int) -> str:
        """Why the seeker cannot have this port; "" when nothing speaks against it."""
        label = str(port)
        origin = self._places.origins.get(label)
        if label in self._places.taken:
            return f"Port {port} is taken"
        if origin is not None and origin.use.owner != self._seeker.use.owner:
            if not self._is_over(origin):
                return f"Port {port} was somebody else's until lately"
            if self._seeker.open:
                return f"Port {port} was somebody else's once, so nothing public can be there"
        if origin is not None and origin.shared and self._seeker.open:
            return f"Port {port} was somebody else's once, so nothing public can be there"
        if label not in self._held and len(self._held) >= self._per_person:
            return f"You hold {len(self._held)} ports, as many as one person may"
        return ""

    def choose(self, pick: Callable[[list[int]], int]) -> int | None:
        """The best port for the seeker; None when there is none. `pick` chooses among equals."""
        free = [port for port in self._ports if not self.refusal(port)]
        best = min(map(self._rank, free), default=None)
        return pick([port for port in free if self._rank(port) == best]) if free else None

    def _rank(self, port: int) -> tuple[int, float]:
        """The same use's last port, then own ones, then new ones, then those of others."""
        origin = self._places.origins.get(str(port))
        if origin is None:
            return 2, 0
        age = origin.used.timestamp()
        if origin.use == self._seeker.use:
            return 0, -age
        if origin.use.owner != self._seeker.use.owner:
            return 4, age
        return (3 if origin.kept else 1), age

    def why_none(self) -> str:
        """Why no port is left, for whoever wanted any."""
        if len(self._held) >= self._per_person:
            return (
                f"You hold {len(self._held)} ports, as many as one person may. "
                "End a session that you do not need: its ports can be yours again at once."
            )
        return (
            "All ports for apps are taken, or were somebody else's until lately. "
            "End a session that you do not need, or ask an administrator for a larger pool."
        )
