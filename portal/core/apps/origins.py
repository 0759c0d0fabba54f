"""Origins of apps: each app has its own, never the portal's.

An origin is identified by its label: a random name below the apps' domain, never given to another
user, or a port number of the pool. A session's SSH endpoint is a port in both modes.
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
"""Ports from 1024 on that browsers refuse to connect to: the "bad ports" of the Fetch standard,
section "Port blocking" (https://fetch.spec.whatwg.org/#port-blocking)."""


def port_of(label: str) -> int | None:
    """The port of a label; None for a random name, which is longer and may be all digits."""
    return int(label) if label.isdecimal() and label.isascii() and len(label) <= 5 else None


@dataclass(frozen=True)
class Origins:
    """How labels map to addresses at this site."""

    scheme: str
    mode: Mode
    """The kind of origin that an app gets unless its owner requests a port."""
    domain: str
    """The domain above the subdomains."""
    pool_host: str
    """Host name of the pool's ports."""
    port: int | None
    """Port of the subdomain URLs; None: the scheme's default."""
    ports: Range | None
    """The pool; in the mode "subdomains" there may be none."""
    ssh_ports: Range

    def url(self, label: str) -> str:
        """The origin with this label."""
        if port_of(label) is not None:
            return f"{self.scheme}://{self.pool_host}:{label}"
        return f"{self.scheme}://{label}.{self.domain}" + (f":{self.port}" if self.port else "")

    def patterns(self) -> list[str]:
        """Source expressions of a Content-Security-Policy for the origins of all apps."""
        names = [f"{self.scheme}://*.{self.domain}" + (f":{self.port}" if self.port else "")]
        pool = [f"{self.scheme}://{self.pool_host}:*"] if self.ports else []
        return (names if self.mode == "subdomains" else []) + pool

    def label_at(self, host: str) -> str | None:
        """The label for a Host header; None if no app can have this origin."""
        host = host.lower()
        name, _, number = host.rpartition(":")
        if name == self.pool_host.lower() and self._in_pool(number, "web"):
            return number
        label, dot, domain = host.partition(":")[0].partition(".")
        is_name = self.mode == "subdomains" and domain == self.domain.lower()
        return label if label and dot and is_name else None

    def pool(self, kind: str) -> Range | None:
        """The port range for apps of this kind; None if there is none."""
        return self.ssh_ports if kind == "ssh" else self.ports

    def has_name(self, kind: str) -> bool:
        """Whether an app of this kind gets a name, unless its owner requests a port."""
        return kind != "ssh" and self.mode == "subdomains"

    def usable(self, kind: str) -> list[int]:
        """The pool's ports for apps of this kind, without those that browsers block."""
        first, last = self.pool(kind) or (0, -1)
        return [port for port in range(first, last + 1) if self._in_pool(str(port), kind)]

    def fits(self, label: str, kind: str) -> bool:
        """Whether this site still serves the label, and browsers connect to it."""
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
    """The use of an origin: one user's app of an image."""

    owner: str
    environment: str
    version: str
    app: str


@dataclass(frozen=True)
class Origin:
    """The stored data of an origin that may be reused."""

    label: str
    use: OriginUse
    """Its current or last use."""
    kept: bool
    """Whether the same use gets it again later."""
    shared: bool
    """Whether several users have used it; it is never assigned to a public app."""
    mark: str
    """Random; changes with the use, "" for the first one. A browser with a different mark has its
    data for this origin cleared."""
    used: datetime
    """When the current use began, or the last one ended."""


@dataclass(frozen=True)
class OriginRequest:
    """A request for an origin."""

    use: OriginUse
    kind: str
    keep: bool
    """Whether the same use should get it again."""
    may_be_public: bool
    """Whether the app may be made public."""


@dataclass(frozen=True)
class PortPolicy:
    """How the ports of the pool are shared."""

    per_person: int
    quarantine: timedelta
    """How long after its last use a port stays reserved for its last user."""


@dataclass(frozen=True)
class KnownOrigins:
    """The labels in use, and the origins that may be used again, by label."""

    taken: Collection[str]
    by_label: Mapping[str, Origin]


@dataclass(frozen=True)
class OriginChoice:
    """The origin chosen for an app."""

    origin: Origin | None
    """None: the app keeps its current one."""
    refused: str = ""
    """Why the preferred port is not available, for the owner."""
    port_requested: bool = False
    """Whether a port was requested; the app then cannot be moved again for a moment."""


def claim_origin(
    stored: Origin | None, label: str, request: OriginRequest, now: datetime, mark: str
) -> Origin:
    """The origin as it is to be stored for this use; `mark` is a new random value."""
    if stored is None:
        return Origin(label, request.use, request.keep, shared=False, mark="", used=now)
    if stored.use == request.use:
        return replace(stored, kept=request.keep, used=now)
    shared = stored.shared or stored.use.owner != request.use.owner
    return Origin(label, request.use, request.keep, shared=shared, mark=mark, used=now)


def choose_name(origins: KnownOrigins, request: OriginRequest) -> str | None:
    """The last name of this use, if it is kept and free; None: a new one is needed."""
    candidates = [
        origin
        for origin in origins.by_label.values()
        if origin.use == request.use
        and origin.kept
        and port_of(origin.label) is None
        and origin.label not in origins.taken
    ]
    newest = max(candidates, key=lambda origin: origin.used, default=None)
    return newest.label if newest and request.keep else None


class PortChooser:
    """Chooses a port of the pool for one request.

    Browsers keep data by origin (storage, caches, service workers), and tabs left open keep sending
    requests to it. So a port stays reserved for its last user for longer than any login lasts, even
    if another user requests it; a public app never gets a port that another user has ever had; and
    the number of ports per user is limited, or one user could take all of them.
    """

    def __init__(
        self,
        ports: Collection[int],
        origins: KnownOrigins,
        request: OriginRequest,
        policy: PortPolicy,
        now: datetime,
    ) -> None:
        self._ports = ports
        self._origins = origins
        self._request = request
        # SSH clients store nothing by port: the host key belongs to the session.
        self._quarantine = timedelta(0) if request.kind == "ssh" else policy.quarantine
        self._per_person = policy.per_person
        self._now = now
        self._held = {label for label in map(str, ports) if self._is_held(label)}

    def _is_held(self, label: str) -> bool:
        """Whether the requesting user has this port in use or reserved."""
        origin = self._origins.by_label.get(label)
        if origin is None or origin.use.owner != self._request.use.owner:
            return False
        return label in self._origins.taken or not self._is_past_quarantine(origin)

    def _is_past_quarantine(self, origin: Origin) -> bool:
        return self._now - origin.used >= self._quarantine

    def refusal(self, port: int) -> str:
        """Why the request cannot get this port; "" if it can."""
        label = str(port)
        origin = self._origins.by_label.get(label)
        if label in self._origins.taken:
            return f"Port {port} is taken"
        if origin is not None and origin.use.owner != self._request.use.owner:
            if not self._is_past_quarantine(origin):
                return f"Port {port} was another user's until recently"
            if self._request.may_be_public:
                return f"Port {port} was another user's before, so no public app can use it"
        if origin is not None and origin.shared and self._request.may_be_public:
            return f"Port {port} was another user's before, so no public app can use it"
        if label not in self._held and len(self._held) >= self._per_person:
            return f"You hold {len(self._held)} ports, the limit for one user"
        return ""

    def choose(self, pick: Callable[[list[int]], int]) -> int | None:
        """The best available port; `pick` chooses among equals. None if there is none."""
        free = [port for port in self._ports if not self.refusal(port)]
        best = min(map(self._rank, free), default=None)
        return pick([port for port in free if self._rank(port) == best]) if free else None

    def _rank(self, port: int) -> tuple[int, float]:
        """Sort key: the last port of the same use, the user's own, unused ports, others'."""
        origin = self._origins.by_label.get(str(port))
        if origin is None:
            return 2, 0
        age = origin.used.timestamp()
        if origin.use == self._request.use:
            return 0, -age
        if origin.use.owner != self._request.use.owner:
            return 4, age
        return (3 if origin.kept else 1), age

    def why_none(self) -> str:
        """Why no port is available, for the owner."""
        if len(self._held) >= self._per_person:
            return (
                f"You hold {len(self._held)} ports, the limit for one user. "
                "End a session that you do not need: you can use its ports again at once."
            )
        return (
            "All ports for apps are taken, or were another user's until recently. "
            "End a session that you do not need, or ask an administrator for a larger pool."
        )
