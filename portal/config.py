"""The settings of a site: one TOML file, read once, never changed while running."""

from __future__ import annotations

import os
import tomllib
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from portal.core.apps.origins import Mode, Origins, PortPolicy, Range
from portal.core.auth.logins import LoginTerms
from portal.core.cluster.fgpu import Compute, GpuKind, Sharing, parse_ratio
from portal.core.cluster.gpu_offers import Gpus
from portal.core.units import Memory

FROZEN = ConfigDict(frozen=True, extra="forbid")
_FROM_OUTSIDE = {
    "SLIPWAY_PUBLIC_URL": "public_url",
    "SLIPWAY_APPS": "apps",
    "SLIPWAY_APPS_PORTS": "apps_ports",
    "SLIPWAY_SSH_PORTS": "ssh_ports",
    "SLIPWAY_TLS_CERTIFICATE": "tls_certificate",
}
"""Web settings that a container learns only at start; ranges as "10000-10039"."""


_POOL = (10000, 10199)
MAX_SHARDS = 64
SMALLEST = Fraction(1, 100)
"""The smallest step: amounts are told apart by three places."""
Ratio = Annotated[Fraction, BeforeValidator(parse_ratio)]

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
Dotfile = Annotated[str, Field(pattern=rf"^\.{_PART}(/{_PART})*$")]


def _is_loopback(name: str) -> bool:
    name = name.lower().strip("[]")
    return name in ("localhost", "::1") or name.endswith(".localhost") or name.startswith("127.")


class WebSettings(BaseModel):
    """Where people find the portal."""

    model_config = FROZEN

    public_url: str = Field("http://localhost:8080", description="Address that browsers use.")
    apps: Mode = Field(
        "ports",
        description="Apps' own origins: subdomains of apps_domain, which is recommended as none is "
        "ever somebody else's, or ports of a pool where there is no wildcard name.",
    )
    apps_host: str = Field(
        "127.0.0.1",
        pattern=r"^[A-Za-z0-9.-]+$",
        description="Host name of the pool's ports; not the portal's, as cookies ignore ports.",
    )
    apps_ports: Range | None = Field(
        None,
        description="First and last port of the pool, without those that browsers refuse; 10000 "
        "to 10199 unless set. With subdomains there is a pool only where it is set, for those "
        "who ask for a port.",
    )
    ports_per_person: int = Field(
        16, ge=1, description="Ports that one person holds at most, those just left included."
    )
    port_quarantine_days: int = Field(
        30,
        ge=1,
        description="Days for which a port that was left stays its last user's; longer than any "
        "login lasts.",
    )
    ssh_ports: Range = Field((10200, 10249), description="First and last port for SSH.")
    apps_domain: str = Field(
        "apps.localhost",
        description="Domain whose subdomains are the apps' origins; must not contain the portal.",
    )
    listen: str = Field("0.0.0.0:8080", description="Where HAProxy takes browsers.")
    listen_runners: str = Field("0.0.0.0:8443", description="Where HAProxy takes call-backs.")
    tls_certificate: str = Field("", description="PEM (chain and key) for https; empty: http.")
    plain_http: bool = Field(
        False,
        description="Permit http under names of other machines: passwords can be read on the way.",
    )
    login_hours: int = Field(12, ge=1, description="How long a login lasts without being used.")
    login_days: int = Field(14, ge=1, description="Last day of a login, however much it is used.")
    token_days: int = Field(90, ge=1, le=3650, description="Longest life of an API token, in days.")
    logins_per_minute: int = Field(
        10, ge=1, le=60_000, description="Login attempts per address (IPv6: per /64) and minute."
    )
    logins_per_account: int = Field(
        20,
        ge=1,
        le=3_600_000,
        description="Login attempts per account and hour from networks it never logged in from, "
        "and wrong ones from each that it did.",
    )

    @property
    def login_terms(self) -> LoginTerms:
        """How long log-ins last, and how often passwords may be tried."""
        return LoginTerms(
            idle=timedelta(hours=self.login_hours),
            life=timedelta(days=self.login_days),
            token_days=self.token_days,
            per_minute=self.logins_per_minute,
            per_hour=self.logins_per_account,
        )

    connections: int = Field(
        8000,
        ge=1000,
        description="Connections that HAProxy holds at once; portal, apps and runners have shares.",
    )
    connections_per_address: int = Field(
        2000,
        ge=10,
        description="So many at once from one address (IPv6: one /64), at the portal and at apps.",
    )
    requests_per_second: int = Field(
        300,
        ge=10,
        description="Requests to the portal that one address may send, as a mean over ten seconds.",
    )
    requests_at_once: int = Field(
        200, ge=10, description="Requests to the portal from one address that are under way."
    )

    @property
    def secure(self) -> bool:
        """Whether browsers reach us by https."""
        return urlsplit(self.public_url).scheme == "https"

    @property
    def only_here(self) -> bool:
        """Whether portal and apps have names of loopback, which browsers trust like https."""
        apps = self.apps_host if self.apps == "ports" else self.apps_domain
        return all(map(_is_loopback, (self.host, apps)))

    @property
    def shared_domain(self) -> str:
        """The domain that portal and apps have in common; "" where each has one of its own.

        A guess from the last two parts: no list of public suffixes is asked.
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
        """Where apps are found."""
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
        """The ports that apps may have; None where they have names only."""
        return self.apps_ports or (_POOL if self.apps == "ports" else None)

    @property
    def port_rules(self) -> PortPolicy:
        """How these are shared out."""
        return PortPolicy(self.ports_per_person, timedelta(days=self.port_quarantine_days))

    @property
    def ssh_host(self) -> str:
        """The host of the SSH ports: where the pool of ports is, if there is one."""
        return self.apps_host if self.pool else self.host

    def app_url(self, label: str) -> str:
        """Origin of the app with this label."""
        return self.origins.url(label)

    def app_cookie(self, label: str) -> str:
        """The cookie that lets a browser into the app; its own name, as cookies ignore ports.

        With https its prefix lets it come from this very host only.
        """
        return ("__Host-" if self.secure else "") + f"slipway_app_{label}"

    def seen_cookie(self, label: str) -> str:
        """The cookie by which a browser remembers that it was cleared at this origin."""
        return ("__Secure-" if self.secure else "") + f"slipway_seen_{label}"

    @model_validator(mode="after")
    def _keep_apart(self) -> WebSettings:
        """Apps are strangers: neither their host nor their ports may be the portal's."""
        pool = self.pool
        if not (self.secure or self.plain_http or self.only_here):
            raise ValueError(
                "public_url is plain http, and portal or apps have names of other machines. "
                "Passwords and cookies could be read on the way, and over http browsers leave out "
                "the headers (Sec-Fetch-*) that keep other pages from people's apps. Use https; "
                "plain_http = true permits this all the same"
            )
        if pool and self.apps_host.lower() == self.host.lower():
            raise ValueError(
                f"apps_host is the portal's own host, {self.host}. Cookies ignore ports, so any "
                "app could overwrite people's logins. Give apps_host another name of this machine."
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
                f"login lasts ({self.login_days} days): whoever gets a port meanwhile would get "
                "what the last user's open windows send there"
            )
        if self.apps == "subdomains":
            self._check_domain()
        return self

    def _check_domain(self) -> None:
        own, apps = f".{self.host.lower()}", f".{self.apps_domain.lower()}"
        if own.endswith(apps):
            raise ValueError(
                f"apps_domain {self.apps_domain} contains the portal, {self.host}. Apps are "
                "strangers: give them a domain that the portal is not in."
            )

    def _check_range(self, name: str, ports: Range) -> None:
        if not 1024 <= ports[0] <= ports[1] <= 65535:
            raise ValueError(f"{name} is first and last port, from 1024 to 65535")
        for place in (self.listen, self.listen_runners, urlsplit(self.public_url).netloc):
            port = place.rpartition(":")[2]
            if port.isdecimal() and ports[0] <= int(port) <= ports[1]:
                raise ValueError(f"{name} holds port {port}, which is the portal's")


class LoginSettings(BaseModel):
    """The login node: passwords are checked and commands run there."""

    model_config = FROZEN

    host: str = Field("login", description="Login node with sshd and Slurm's commands.")
    port: int = Field(22, description="Its SSH port.")
    known_hosts: str = Field("/etc/slipway/known_hosts", description="Its host key (OpenSSH form).")
    reader: str = Field("slipway", description="Unprivileged account that reads Slurm's state.")
    minimum_uid: int = Field(1000, description="Accounts below this number are refused.")
    certificate_minutes: int = Field(5, ge=1, description="Life of a user's SSH certificate.")
    source_address: str = Field("", description="Address in certificates; empty: found out.")
    account_checks: int = Field(
        300,
        ge=0,
        description="Accounts that are looked at in a minute, by logging in as them; 0: none.",
    )


class SlurmSettings(BaseModel):
    """How Slurm is asked."""

    model_config = FROZEN

    poll_seconds: float = Field(2.0, gt=0, description="Time between two looks at the queue.")
    partitions_seconds: float = Field(30.0, gt=0, description="Time between two looks at nodes.")
    limits_seconds: float = Field(60.0, gt=0, description="Time between two looks at limits.")
    command_seconds: float = Field(20.0, gt=0, description="Time limit of one Slurm command.")
    admins: list[str] = Field([], description="Users who see and end everybody's sessions.")
    operator: str = Field(
        "", description="Account with AdminLevel=Operator that extends time; empty: nobody does."
    )
    extend_minutes: int = Field(60, ge=1, description="How much one extension gives.")


class SessionSettings(BaseModel):
    """What runs inside a session."""

    model_config = FROZEN

    images: str = Field("/srv/slipway/images", description="Folder of <env>/<version>/image.sif.")
    apps: str = Field("/usr/share/slipway/apps", description="Folder of <name>/app.toml.")
    templates: str = Field("/usr/share/slipway/templates", description="Folder of job templates.")
    toolkit: str = Field("/srv/slipway/toolkit.sqsh", description="The toolkit, on the nodes.")
    directory: str = Field(".slipway", description="Folder in users' homes for scratch and logs.")
    storage: str = Field(
        "storage",
        pattern=r"^(\{user\}|[A-Za-z0-9._/@%+=-])+$",
        description="Folder of a user's storage folders, in the home; or absolute with {user}.",
    )
    dotfiles: tuple[Dotfile, ...] = Field(
        (
            ".tmux.conf",
            ".config/tmux/tmux.conf",
            ".inputrc",
            ".vimrc",
            ".nanorc",
            ".gitconfig",
        ),
        description="Files of a user's home that each session gets copies of; none with secrets.",
    )
    callback: str = Field("https://portal:8443", description="Address that runners call back.")
    gateway_ports: tuple[int, int] = Field((0, 0), description="Port range on nodes; 0: any.")
    variables_days: int = Field(
        30, ge=0, description="Days after its end that a session's variables keep their values."
    )
    heartbeat_seconds: int = Field(10, ge=1, description="Time between two usage reports.")


class GpuKindSettings(BaseModel):
    """One kind of GPU, and how it is shared out."""

    model_config = FROZEN

    name: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$",
        description="Its Type in gres.conf; empty where GPUs have none.",
    )
    title: str = Field("GPU", description="What people call it.")
    memory: Memory = Field(description='Memory of one GPU (of one MIG device), as "80g".')
    unit: Ratio = Field(
        Fraction(1), gt=0, le=16, description='How much of one GPU 1 fGPU is: 0.5, or "1/3".'
    )
    step: Ratio = Field(
        Fraction(1, 4), ge=SMALLEST, le=16, description='Amounts differ by so many fGPU, or "1/3".'
    )
    sharing: Sharing = Field(
        "shared", description="Shared by Slurm's shards, given whole, or a MIG device (whole)."
    )
    compute: Compute = Field(
        "limiter", description="How the share of multiprocessors is kept: limiter, mps, none."
    )

    @property
    def kind(self) -> GpuKind:
        """The same for the core."""
        return GpuKind(
            name=self.name,
            title=self.title,
            memory_mb=self.memory,
            unit=self.unit,
            step=self.step,
            sharing=self.sharing,
            compute=self.compute,
        )

    @model_validator(mode="after")
    def _few_shards(self) -> GpuKindSettings:
        if self.sharing == "shared" and self.kind.shards > MAX_SHARDS:
            raise ValueError(
                f"unit {self.unit} in steps of {self.step} cuts a GPU into {self.kind.shards} "
                f"shards; {MAX_SHARDS} is the most that makes sense"
            )
        return self


class GpuSettings(BaseModel):
    """Which GPUs there are; none are offered where none are named."""

    model_config = FROZEN

    kinds: tuple[GpuKindSettings, ...] = Field(
        (), description="The site's GPUs; the first that a resource group has is proposed."
    )
    margin_mb: int = Field(
        1024,
        ge=0,
        description="MiB that a job may hold beyond its slice; contexts are in it, too.",
    )

    @property
    def gpus(self) -> Gpus:
        """The same for the core."""
        return Gpus(tuple(kind.kind for kind in self.kinds))

    @model_validator(mode="after")
    def _told_apart(self) -> GpuSettings:
        names = [kind.name for kind in self.kinds]
        if len(set(names)) < len(names) or (len(names) > 1 and "" in names):
            raise ValueError("each of several kinds needs a name of its own, its Type in gres.conf")
        return self


class StateSettings(BaseModel):
    """Where the portal keeps what it must not lose."""

    model_config = FROZEN

    directory: str = Field("/var/lib/slipway", description="Database, keys and certificates.")
    run: str = Field("/run/slipway", description="Sockets between the portal and HAProxy.")
    database: str = Field("", description="SQLAlchemy address; empty: SQLite in the directory.")
    journal_days: int = Field(365, ge=1, description="Days that the journal's lines are kept.")

    @property
    def database_url(self) -> str:
        """The database's address."""
        return self.database or f"sqlite:///{self.directory}/slipway.db"

    @property
    def keys(self) -> Path:
        """The keys that values in the database are encrypted with."""
        return Path(self.directory) / "keys"

    def ca_file(self, name: str) -> Path:
        """A file of the certificate authorities."""
        return Path(self.directory) / "ca" / name


class Settings(BaseModel):
    """All settings."""

    model_config = FROZEN

    web: WebSettings = Field(WebSettings(), description="Where people find the portal.")
    login: LoginSettings = Field(LoginSettings(), description="The login node.")
    slurm: SlurmSettings = Field(SlurmSettings(), description="How Slurm is asked.")
    sessions: SessionSettings = Field(SessionSettings(), description="What runs in a session.")
    gpu: GpuSettings = Field(GpuSettings(), description="GPUs and how they are shared out.")
    state: StateSettings = Field(StateSettings(), description="What must not be lost.")


class SettingsError(Exception):
    """The settings file is missing or wrong; the text names the key."""


def load_settings(path: str | None = None) -> Settings:
    """Read the TOML file (argument, else SLIPWAY_CONFIG, else /etc/slipway/slipway.toml).

    Variables of the environment override what a container learns only at start: its ports.
    """
    file = Path(path or os.environ.get("SLIPWAY_CONFIG", "/etc/slipway/slipway.toml"))
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}") from error
    for variable, name in _FROM_OUTSIDE.items():
        if value := os.environ.get(variable):
            data.setdefault("web", {})[name] = (
                value.split("-") if name.endswith("_ports") else value
            )
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise SettingsError(f"{file}: " + "; ".join(lines)) from error
