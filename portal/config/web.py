"""[web]: addresses, the apps' origins, logins and limits on requests."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from portal.config.base import FROZEN
from portal.core.apps.origins import Mode, Origins, PortPolicy, Range
from portal.core.auth.logins import LoginTerms
from portal.core.colours import Scheme, accent_problem
from portal.core.validation import LINK

LOGO = r"^$|^/.*\.(png|svg)$"
COLOUR = "^$|^#[0-9A-Fa-f]{6}$"
_POOL = (10000, 10199)
RUNNERS_SOCKET = "runners.sock"
"""Where the web application gets the calls of runners, below `state.run`."""


def runner_threads(threads: int) -> int:
    """The threads for calls of runners in a process with so many for all other requests."""
    return threads // 2


def processors() -> int:
    """The processors that this process may use: its affinity, or its cgroup's quota if smaller."""
    most = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return most if quota == "max" else min(most, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):  # no cgroup of version 2, or not one of its own
        return most


def _is_loopback(name: str) -> bool:
    name = name.lower().strip("[]")
    return name in ("localhost", "::1") or name.endswith(".localhost") or name.startswith("127.")


def _network(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an address or a network: {error}") from error
    if network.prefixlen == 0:
        raise ValueError(f"{text} would trust everybody: name the proxies' own networks")
    return str(network)


Proxy = Annotated[str, AfterValidator(_network)]
"""An address or network, in its usual form."""


class HelpLink(BaseModel):
    """A page of the site, linked from the portal."""

    model_config = FROZEN

    title: str = Field(min_length=1, max_length=60, description="Text of the link.")
    url: str = Field(
        pattern=f"^{LINK}$", max_length=500, description="https://…, http://…, mailto:… or a path."
    )


class WebSettings(BaseModel):
    """Addresses, the apps' origins, logins and limits on requests."""

    model_config = FROZEN

    public_url: str = Field("http://localhost:8080", description="The portal's URL in browsers.")
    site_name: str = Field(
        "Slipway",
        max_length=40,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Name of the portal on its pages.",
    )
    contact: str = Field(
        "",
        max_length=200,
        description="Whom users ask for help: an e-mail address, a URL, or words; on every page.",
    )
    help_links: tuple[HelpLink, ...] = Field(
        (), max_length=10, description="Pages of the site's own, on the help page and below others."
    )
    logo: str = Field(
        "",
        pattern=LOGO,
        description="PNG or SVG file of at most 256 KB, in place of Slipway's own logo.",
    )
    logo_dark: str = Field(
        "",
        pattern=LOGO,
        description="The same for dark colours, which the bar above every page has; logo if empty.",
    )
    accent: str = Field(
        "",
        pattern=COLOUR,
        description='Colour of links and buttons on light pages, such as "#0b6478"; dark enough to '
        "be read on white (a contrast of 4.5:1).",
    )
    accent_dark: str = Field(
        "",
        pattern=COLOUR,
        description='The same on dark pages, such as "#67c5d4"; light enough to be read there.',
    )
    apps: Mode = Field(
        "ports",
        description="Where apps have their origins: subdomains of apps_domain (recommended: no "
        "origin is ever reused by another user), or ports of a pool where there is no wildcard "
        "name.",
    )
    apps_host: str = Field(
        "127.0.0.1",
        pattern=r"^[A-Za-z0-9.-]+$",
        description="Host name of the pool's ports; not the portal's own, as cookies ignore ports.",
    )
    apps_ports: Range | None = Field(
        None,
        description="First and last port of the pool; ports that browsers refuse are left out. "
        'With apps = "ports" 10000 to 10199 unless set; with subdomains there is a pool only '
        "where this is set, for users who ask for a port.",
    )
    ports_per_person: int = Field(
        16, ge=1, description="Most ports that one user holds, including those just released."
    )
    port_quarantine_days: int = Field(
        30,
        ge=1,
        description="Days for which a released port stays reserved for its last user; longer "
        "than any login lasts.",
    )
    ssh_ports: Range = Field(
        (10200, 10249), description="First and last port for SSH into sessions."
    )
    apps_domain: str = Field(
        "apps.localhost",
        description="Domain whose subdomains are the apps' origins; must not contain the portal.",
    )
    listen: str = Field(
        "0.0.0.0:8080", description="Address and port on which HAProxy listens for browsers."
    )
    listen_runners: str = Field(
        "0.0.0.0:8443", description="The same for callbacks of sessions' runners."
    )
    tls_certificate: str = Field("", description="PEM file (chain and key) for https; empty: http.")
    plain_http: bool = Field(
        False,
        description="Permit http under names of other machines: passwords can be intercepted.",
    )
    trusted_proxies: list[Proxy] = Field(
        [],
        description="Addresses or networks of TLS proxies and load balancers in front of HAProxy, "
        'such as ["192.0.2.7", "2001:db8:7::/64"]. They must speak the PROXY protocol on every '
        "connection to web.listen, the apps and SSH, and tell the client's address by it; limits "
        "and the audit log then use that. Nobody else can claim an address.",
    )
    login_hours: int = Field(12, ge=1, description="Hours that a login lasts without being used.")
    login_days: int = Field(
        14, ge=1, description="Most days that a login lasts, however much it is used."
    )
    token_days: int = Field(90, ge=1, le=3650, description="Longest life of an API token, in days.")
    logins_per_account: int = Field(
        20,
        ge=1,
        le=360_000,
        description="Wrong passwords per account and hour from networks that it never logged in "
        "from, and as many from each network that it did. One address (IPv6: one /64) may send ten "
        "times as many for all accounts that never logged in from it.",
    )
    connections: int = Field(
        8000,
        ge=1000,
        description="Simultaneous connections of HAProxy; portal, apps and runners share them.",
    )
    connections_per_address: int = Field(
        2000,
        ge=10,
        description="Simultaneous connections from one address (IPv6: one /64) to portal and apps "
        "that stay open, whoever they are. People who are logged in have more there.",
    )
    requests_per_second: int = Field(
        300,
        ge=10,
        description="Requests to the portal per second, as a mean over ten seconds: of each person "
        "who is logged in, and of all others from one address together.",
    )
    requests_at_once: int = Field(
        200,
        ge=10,
        description="Simultaneous requests to the portal, of each person and address likewise.",
    )

    workers: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes of the web application; 0: one for each processor, 2 to 16 (set it "
        "where HAProxy runs in a container of its own). Each takes about 130 MB of memory, and at "
        "most one processor.",
    )
    threads: int = Field(
        8, ge=4, le=64, description="Requests that each of these processes handles at once."
    )

    @property
    def processes(self) -> int:
        """The number of processes of the web application on this host."""
        return self.workers or min(max(processors(), 2), 16)

    @property
    def requests_in_progress(self) -> int:
        """Requests that HAProxy passes on at once: some wait, so that no thread does."""
        return self.processes * self.threads * 5 // 4

    @property
    def log_ins_of_process(self) -> int:
        """Passwords that a process checks at once: half of its threads or less, since second
        factors may take long.
        """
        return self.threads * 3 // 4 - 2

    @property
    def log_ins_in_progress(self) -> int:
        """Log-ins that HAProxy passes on at once: three quarters of what all processes take. One
        that gets more than it takes refuses it (NotTried), and HAProxy asks another.
        """
        return max(self.processes * self.log_ins_of_process * 3 // 4, 2)

    @property
    def runner_calls_in_progress(self) -> int:
        """The same for the calls of runners, which have threads of their own."""
        return self.processes * runner_threads(self.threads) * 5 // 4

    @property
    def login_terms(self) -> LoginTerms:
        """Lifetimes of logins, and the rate limits for passwords."""
        return LoginTerms(
            idle=timedelta(hours=self.login_hours),
            life=timedelta(days=self.login_days),
            token_days=self.token_days,
            per_hour=self.logins_per_account,
        )

    @property
    def contact_url(self) -> str:
        """The link of the contact; "" if it is neither an e-mail address nor a URL."""
        if re.fullmatch(r"[^\s@<>]+@[^\s@<>]+", self.contact):
            return f"mailto:{self.contact}"
        return self.contact if re.fullmatch(r"https?://[!-~]+", self.contact) else ""

    @property
    def own_origin(self) -> str:
        """The portal's origin, as in browsers' Origin header."""
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def secure(self) -> bool:
        """Whether browsers use https."""
        return urlsplit(self.public_url).scheme == "https"

    @property
    def only_here(self) -> bool:
        """Whether portal and apps have loopback names, which browsers trust like https."""
        apps = self.apps_host if self.apps == "ports" else self.apps_domain
        return all(map(_is_loopback, (self.host, apps)))

    @property
    def shared_domain(self) -> str:
        """The registrable domain that portal and apps share; "" if they share none.

        A guess from the last two labels: no public suffix list is consulted.
        """
        apps = self.apps_host if self.apps == "ports" else self.apps_domain
        if any(map(_is_loopback, (self.host, apps))) or apps.replace(".", "").isdecimal():
            return ""
        ours, theirs = (".".join(name.lower().split(".")[-2:]) for name in (self.host, apps))
        return ours if ours == theirs and "." in ours else ""

    @property
    def host(self) -> str:
        """The portal's own host name."""
        return urlsplit(self.public_url).hostname or "localhost"

    @property
    def origins(self) -> Origins:
        """The mapping of labels to the apps' origins."""
        parts = urlsplit(self.public_url)
        return Origins(
            scheme=parts.scheme,
            mode=self.apps,
            domain=self.apps_domain,
            pool_host=self.apps_host,
            port=parts.port,
            ports=self.pool,
            ssh_ports=self.ssh_ports,
        )

    @property
    def pool(self) -> Range | None:
        """The ports for apps; None if apps have names only."""
        return self.apps_ports or (_POOL if self.apps == "ports" else None)

    @property
    def port_rules(self) -> PortPolicy:
        """The rules for allocating these ports."""
        return PortPolicy(self.ports_per_person, timedelta(days=self.port_quarantine_days))

    @property
    def ssh_host(self) -> str:
        """Host of the SSH ports: the pool's host, if there is a pool."""
        return self.apps_host if self.pool else self.host

    def app_url(self, label: str) -> str:
        """Origin of the app with this label."""
        return self.origins.url(label)

    def app_cookie(self, label: str) -> str:
        """Name of the cookie that admits a browser to the app; unique, as cookies ignore ports.

        With https its prefix binds it to this host.
        """
        return ("__Host-" if self.secure else "") + f"slipway_app_{label}"

    def seen_cookie(self, label: str) -> str:
        """Name of the cookie that records that a browser's storage was cleared at this origin."""
        return ("__Secure-" if self.secure else "") + f"slipway_seen_{label}"

    @field_validator("accent", "accent_dark")
    @classmethod
    def _is_readable(cls, colour: str, info: ValidationInfo) -> str:
        scheme: Scheme = "dark" if info.field_name == "accent_dark" else "light"
        if colour and (problem := accent_problem(colour, scheme)):
            raise ValueError(problem)
        return colour

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'must begin with https:// (or http://) and a host name, not "{url}"')
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError("the portal has an origin of its own: no path after the host name")
        return url

    @model_validator(mode="after")
    def _keep_apart(self) -> WebSettings:
        """Apps are untrusted: neither their host nor their ports may be the portal's."""
        pool = self.pool
        if not (self.secure or self.plain_http or self.only_here):
            raise ValueError(
                "public_url is plain http, and portal or apps have names of other machines. "
                "Passwords and cookies could be intercepted, and over http browsers omit the "
                "headers (Sec-Fetch-*) that protect users' apps from other pages. Use https; "
                "plain_http = true permits http nevertheless"
            )
        if pool and self.apps_host.lower() == self.host.lower():
            raise ValueError(
                f"apps_host is the portal's own host, {self.host}. Cookies ignore ports, so any "
                "app could overwrite users' logins. Give apps_host another name of this machine."
            )
        self._check_range("ssh_ports", self.ssh_ports)
        if pool:
            self._check_range("apps_ports", pool)
            low, high = sorted((pool, self.ssh_ports))
            if high[0] <= low[1]:
                raise ValueError("apps_ports and ssh_ports overlap; each needs ports of its own")
        if self.port_quarantine_days <= self.login_days:
            raise ValueError(
                f"port_quarantine_days is {self.port_quarantine_days}, which is not longer than a "
                f"login lasts ({self.login_days} days): the next user of a port would receive "
                "what the last user's open windows still send there"
            )
        if self.apps == "subdomains":
            self._check_domain()
        return self

    def _check_domain(self) -> None:
        portal, apps = f".{self.host.lower()}", f".{self.apps_domain.lower()}"
        if portal.endswith(apps):
            raise ValueError(
                f"apps_domain {self.apps_domain} contains the portal, {self.host}. Apps are "
                "untrusted: give them a domain that the portal is not in."
            )

    def _check_range(self, name: str, ports: Range) -> None:
        if not 1024 <= ports[0] <= ports[1] <= 65535:
            raise ValueError(f"{name} is first and last port, from 1024 to 65535")
        for address in (self.listen, self.listen_runners, urlsplit(self.public_url).netloc):
            port = address.rpartition(":")[2]
            if port.isdecimal() and ports[0] <= int(port) <= ports[1]:
                raise ValueError(f"{name} holds port {port}, which is the portal's")
