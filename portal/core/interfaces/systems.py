"""What the story needs of the outside world; adapters provide it, tests replay it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from portal.core.admin.audit import AuditEvent
from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.jobs import Estimate, JobReport
from portal.core.cluster.limits import Limits
from portal.core.launch.mounts import Folder
from portal.core.session.idle import Traffic
from portal.core.session.session import Session


class Clock(Protocol):
    """Tells the time."""

    def __call__(self) -> datetime:
        """Now, in UTC, with its time zone."""
        ...


class Scheduler(Protocol):
    """Slurm. Every method raises Unavailable when Slurm does not answer."""

    def submit(self, user: str, session: str, spec: str, script: str) -> str:
        """Submit as the user and return the job id, as Slurm itself has it.

        `spec` is secret: it reaches the job without passing through Slurm. Raises InvalidRequest
        with Slurm's own words when Slurm refuses, OutcomeUnknown when the answer was lost.
        """
        ...

    def estimate(self, user: str, script: str) -> Estimate:
        """Slurm's guess when it would start this script's job; nothing is submitted."""
        ...

    def cancel(self, user: str, *job_ids: str) -> None:
        """Cancel a user's jobs, all with one command; a job that is over already is fine."""
        ...

    def prepare(self, user: str, session: str, spec: str) -> None:
        """Make the session's folder anew, with new instructions, for a job that Slurm has.

        For a job that was put back into the queue and whose first run is over. Again is fine.
        """
        ...

    def release(self, user: str, job_id: str) -> None:
        """Take a hold of the user's own away; a job that is not held is fine."""
        ...

    @property
    def may_extend(self) -> bool:
        """Whether the site has given the portal an account that may extend time limits."""
        ...

    def extend(self, job_id: str, minutes: int) -> None:
        """Let a running job run so many minutes in all; doing it twice changes nothing."""
        ...

    def jobs(self) -> dict[str, JobReport]:
        """All jobs that Slurm remembers, by job id: one query for everybody."""
        ...

    def find(self, session: str, user: str) -> list[JobReport]:
        """The user's jobs that carry this session's name, newest last."""
        ...

    def ended(self, job_ids: Collection[str]) -> dict[str, JobReport]:
        """What accounting knows of these jobs; a job it does not know is left out."""
        ...

    def ended_named(self, session: str, user: str, since: datetime) -> list[JobReport]:
        """The user's jobs of this name that accounting knows."""
        ...

    def partitions(self) -> list[Partition]:
        """All partitions."""
        ...

    def nodes(self) -> list[Node]:
        """All nodes, once for each of their partitions."""
        ...

    def limits(self) -> Limits:
        """Who may use how much."""
        ...


class UserFiles(Protocol):
    """The portal's few files in a user's home, touched as that user."""

    def remove_session(self, user: str, session: str) -> None:
        """Delete all that a session left; nothing there is fine."""
        ...

    def read_log(self, user: str, session: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes of the session's log from `offset` on; b"" when there is none.

        Raises Unavailable, and Conflict when something else is in its place.
        """
        ...

    def folders(self, user: str) -> list[Folder]:
        """What could be mounted: the home directory, then storage folders by name (500 at most)."""
        ...

    def missing_folders(self, user: str, names: Collection[str]) -> set[str]:
        """Those of these names of storage folders that the user has none of."""
        ...

    def make_folder(self, user: str, name: str) -> Folder:
        """Make a storage folder; raises InvalidRequest for the field "folder"."""
        ...

    def log_tail(self, user: str, session: str, limit: int) -> bytes:
        """The end of the session's log, `limit` bytes at most; b"" when there is none.

        Raises Unavailable, and Conflict when something else is in its place.
        """
        ...

    def container_key(self, user: str, new: bool = False) -> str:
        """The user's private SSH key (id_container), made if there is none, or anew.

        All their sessions that run take it, and no other, afterwards. Raises Unavailable.
        """
        ...

    def log_size(self, user: str, session: str) -> int:
        """Bytes in the session's log; 0 when there is none. Raises as read_log does."""
        ...


class Runners(Protocol):
    """The runners inside the jobs, reached through their gateways."""

    def start_app(self, session: Session, order: Mapping[str, object]) -> None:
        """Ask for an app to be started; asking twice starts it once. Raises Unavailable."""
        ...

    def stop_app(self, session: Session, app: str) -> None:
        """Stop an app, and return when it has ended. Raises Unavailable."""
        ...


class Certificates(Protocol):
    """The portal's certificate authority for gateways."""

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Certificate (PEM) for a gateway's request; raises InvalidRequest for a bad request."""
        ...

    def client_ca(self) -> str:
        """PEM of the authority that vouches for the portal towards gateways."""
        ...

    def server_ca(self) -> str:
        """PEM of the authority that vouches for the portal's call-back address."""
        ...


class Routes(Protocol):
    """HAProxy's map: who may pass, and where to. Raises Unavailable."""

    def add(self, key: str, target: str) -> None:
        """Let requests with this key through to the target; again replaces."""
        ...

    def remove(self, *keys: str) -> None:
        """Shut these ways and cut what is under way on them; a key that is not there is fine."""
        ...

    def traffic(self) -> dict[str, Traffic]:
        """What browsers have sent, by the app's gateway name (core.apps.access.gateway_name)."""
        ...

    def set_background_requests(self, paths: Collection[str]) -> None:
        """Say which requests are no use of an app: "app/METHOD/path", by their beginnings.

        "app/STATIC" says that the app's page at "/" may be compressed.
        """
        ...

    def is_lost(self) -> bool:
        """Whether HAProxy has forgotten the map (it was restarted)."""
        ...

    def entries(self) -> dict[str, str]:
        """The map as it is, and with an empty target each key by which somebody is still inside."""
        ...

    def fill(self, routes: Mapping[str, str]) -> None:
        """Give HAProxy the whole map again."""
        ...


class Resolver(Protocol):
    """Names of compute nodes."""

    def __call__(self, node: str) -> str:
        """IP address of a node; raises Unavailable."""
        ...


class RecordEvent(Protocol):
    """Writes the journal; never raises, since what is noted has happened already."""

    def __call__(self, who: str, action: str, target: str = "", detail: str = "") -> None:
        """Write down who did what; never secrets."""
        ...


class NewEvent(Protocol):
    """Makes audit events, for stores that write them together with what they are about."""

    def __call__(self, who: str, action: str, target: str = "", detail: str = "") -> AuditEvent:
        """An event of now, from the address of the request that is being answered."""
        ...


class Authenticator(Protocol):
    """Checks passwords against the cluster."""

    def __call__(self, user: str, password: str) -> bool:
        """Whether the login node takes this password for an ordinary account.

        Raises Unavailable when the login node does not answer.
        """
        ...
