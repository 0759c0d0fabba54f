"""Interfaces to external systems, implemented by the adapters and by the tests' fakes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from portal.core.admin.audit import AuditEvent
from portal.core.apps.ssh_keys import PublicKey
from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.job_reports import Estimate, JobReport
from portal.core.cluster.limits import Limits
from portal.core.jobs.job import Job
from portal.core.jobs.output import FilePiece
from portal.core.launch.mounts import Folder
from portal.core.launch.own_image import ImageFile
from portal.core.session.idle import Traffic
from portal.core.session.session import Session
from portal.core.session_job.runner_protocol import StartRequest


class Clock(Protocol):
    """The current time."""

    def __call__(self) -> datetime:
        """The current time as an aware datetime in UTC."""
        ...


class Scheduler(Protocol):
    """Slurm. Every method raises Unavailable when Slurm does not answer."""

    def submit(self, user: str, session: str, spec: str, script: str) -> str:
        """Submit as the user and return the job id.

        `spec` is secret: it reaches the job without passing through Slurm. Raises InvalidRequest
        with Slurm's message if Slurm rejects it, HomeUnusable, OutcomeUnknown if the answer was
        lost.
        """
        ...

    def estimate(self, user: str, script: str) -> Estimate:
        """Slurm's estimate of when this script's job would start; nothing is submitted."""
        ...

    def cancel(self, user: str, *job_ids: str) -> None:
        """Cancel a user's jobs, arrays ("12") or tasks ("12_3"), by one command. Idempotent."""
        ...

    def prepare(self, user: str, session: str, spec: str) -> None:
        """Recreate the session's folder with a new spec, for a job already in Slurm.

        For a job that was requeued after its first run has ended. Idempotent.
        """
        ...

    def release(self, user: str, job_id: str) -> None:
        """Release a user's own hold. Idempotent."""
        ...

    def begin(self, user: str, job_id: str, seconds: int) -> None:
        """Set the earliest start of a user's waiting job, in seconds from now. Idempotent."""
        ...

    @property
    def may_extend(self) -> bool:
        """Whether the portal has an account that may extend time limits."""
        ...

    def extend(self, job_id: str, minutes: int) -> None:
        """Set the time limit of a running job to `minutes` in total. Idempotent."""
        ...

    def jobs(self) -> dict[str, Job]:
        """All jobs in Slurm's memory, by job id: one query for all users.

        Jobs that have not changed since the last call are the same objects.
        """
        ...

    def find(self, session: str, user: str) -> list[JobReport]:
        """The user's jobs whose name is this session's id, newest last."""
        ...

    def named(self, sessions: Collection[str]) -> dict[str, list[JobReport]]:
        """All users' jobs whose names are these sessions' ids, by name: users choose the names."""
        ...

    def ended(self, job_ids: Collection[str]) -> dict[str, JobReport]:
        """Accounting's records of these jobs, by job id; without unknown ones."""
        ...

    def ended_named(self, session: str, user: str, since: datetime) -> list[JobReport]:
        """Accounting's records of the user's jobs of this name."""
        ...

    def partitions(self) -> list[Partition]:
        """All partitions."""
        ...

    def nodes(self) -> list[Node]:
        """All nodes, once for each of their partitions."""
        ...

    def limits(self) -> Limits:
        """Limits of associations, QOS and partitions."""
        ...


class UserFiles(Protocol):
    """The portal's files in a user's home, accessed as that user. Methods raise Unavailable."""

    def remove_session(self, user: str, session: str) -> None:
        """Delete all files of a session. Idempotent."""
        ...

    def read_log(self, user: str, session: str, offset: int, limit: int) -> bytes:
        """Up to `limit` bytes of the session's log from `offset` on; b"" if there is none.

        Raises Conflict if it is not a regular file.
        """
        ...

    def read_file(self, user: str, path: str, offset: int | None, limit: int) -> FilePiece:
        """Up to `limit` bytes of any file of the user's choice from `offset` on; None: its end.

        Links are followed. From an offset past the end, it is read from its beginning.
        """
        ...

    def folders(self, user: str) -> list[Folder]:
        """Folders to mount: the home directory, then storage folders by name (500 at most)."""
        ...

    def missing(self, user: str, folders: Collection[str], file: str = "") -> set[str]:
        """The names of these that are not storage folders of the user.

        Also the path of the file, FOLDER/NAME or absolute, if it is no file that the user may read.
        """
        ...

    def make_folder(self, user: str, name: str) -> Folder:
        """Create a storage folder; raises InvalidRequest for the field "folder"."""
        ...

    def image_files(self, user: str, places: Sequence[str]) -> list[ImageFile]:
        """The newest image files in the user's storage folders and in these folders of the site.

        Folders that cannot be listed within seconds are omitted.
        """
        ...

    def session_file(self, user: str, session: str, name: str, limit: int) -> bytes:
        """Up to `limit` bytes of a file in the session's folder; b"" if there is no such file."""
        ...

    def log_tail(self, user: str, session: str, limit: int) -> bytes:
        """The last `limit` bytes of the session's log; b"" if there is none.

        Raises as read_log does.
        """
        ...

    def container_key(self, user: str, new: bool = False) -> str:
        """The user's private SSH key (id_container), created if missing, replaced if `new`.

        Afterwards the user's running sessions accept this key and those that the user added.
        """
        ...

    def public_keys(self, user: str) -> list[PublicKey]:
        """The public keys that the user added."""
        ...

    def add_public_key(self, user: str, key: PublicKey) -> None:
        """Make all of the user's sessions accept a key. Idempotent."""
        ...

    def remove_public_key(self, user: str, key: PublicKey) -> None:
        """Make all of the user's sessions refuse a key for new connections. Idempotent."""
        ...

    def log_size(self, user: str, session: str) -> int:
        """Bytes in the session's log; 0 if there is none. Raises as read_log does."""
        ...


class Runners(Protocol):
    """The runners inside the jobs, reached through their gateways."""

    def start_app(self, session: Session, request: StartRequest) -> None:
        """Start an app. Idempotent. Raises Unavailable."""
        ...

    def stop_app(self, session: Session, app: str) -> None:
        """Stop an app and wait until it has ended. Raises Unavailable."""
        ...


class Certificates(Protocol):
    """The portal's certificate authority for gateways."""

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Certificate (PEM) for a gateway's CSR; raises InvalidRequest for an invalid CSR."""
        ...

    def issue_gateway(self, id: str) -> str:
        """A new private key and its certificate (PEM) for the server of this id."""
        ...

    def client_ca(self) -> str:
        """PEM of the CA that signs the portal's client certificate for gateways."""
        ...

    def server_ca(self) -> str:
        """PEM of the CA that signs the certificate of the callback URL."""
        ...


class Routes(Protocol):
    """HAProxy's route map: permitted requests and their targets. Raises Unavailable."""

    def exclusively(self) -> AbstractContextManager[None]:
        """Lock: no other process changes the map or reloads HAProxy meanwhile.

        Revocations stored before are read inside the lock; one that is stored later also removes
        its keys later. So a route is valid when it is added.
        """
        ...

    def add(self, key: str, target: str) -> None:
        """Route requests with this key to the target, replacing an earlier one."""
        ...

    def add_all(self, routes: Mapping[str, str]) -> None:
        """The same for many: targets by key."""
        ...

    def remove(self, *keys: str) -> None:
        """Delete these routes and close their open connections. Idempotent."""
        ...

    def traffic(self) -> dict[str, Traffic]:
        """Traffic from browsers, by the app's gateway name (core.apps.access.gateway_name)."""
        ...

    def set_background_requests(self, paths: Collection[str]) -> None:
        """Set the requests that do not count as use of an app: prefixes of "app/METHOD/path".

        "app/STATIC" permits compression of the app's page at "/".
        """
        ...

    def add_path(self, path: str, key: str) -> None:
        """Send requests from JupyterHub below this path to the route of the key."""
        ...

    def set_paths(self, paths: Mapping[str, str]) -> None:
        """Replace all paths of `add_path`."""
        ...

    def is_lost(self) -> bool:
        """Whether HAProxy has lost the map, as after a restart."""
        ...

    def entries(self) -> dict[str, str]:
        """The map; keys that exist only for connections or the next process have no target."""
        ...

    def generation(self) -> str:
        """An id of the map, which is another one once HAProxy has lost the map.

        Or when its file was rewritten.
        """
        ...

    def set_complete(self, generation: str) -> None:
        """Note that the map has all routes, so that it is not lost; only in this generation."""
        ...


class Resolver(Protocol):
    """Resolves names of compute nodes."""

    def __call__(self, node: str) -> str:
        """IP address of a node; raises Unavailable."""
        ...


class SettingsFile(Protocol):
    """A settings file for another program."""

    def replace(self, text: str) -> None:
        """Replace its content atomically; raises Unavailable."""
        ...


class RecordEvent(Protocol):
    """Writes the audit log; never raises, since the recorded action has already happened."""

    def __call__(self, who: str, action: str, target: str = "", detail: str = "") -> None:
        """Record an action of the user `who`; never secrets."""
        ...


class NewEvent(Protocol):
    """Creates audit events, for stores that write them together with the recorded change."""

    def __call__(self, who: str, action: str, target: str = "", detail: str = "") -> AuditEvent:
        """An event with the current time and the client address of the current request."""
        ...


class Authenticator(Protocol):
    """Checks passwords against the cluster."""

    def __call__(self, user: str, password: str, code: str = "") -> str:
        """The account's name if the login node accepts this password for it, else "".

        `code`: the second factor for the login node; "" for none, or for one without text.
        The name may be spelled differently from `user`. System accounts are refused.

        Raises Unavailable when the login node does not answer.
        """
        ...
