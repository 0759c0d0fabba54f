"""What the story needs of the outside world; adapters provide it, tests replay it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.core.access import AppState, Grant, OpenApp, Ticket
from portal.core.administration import Entry, ImageRule, SiteRules, Template
from portal.core.folders import Folder
from portal.core.job import Estimate, JobReport, Node, Partition
from portal.core.journal import JournalFilter
from portal.core.limits import Limits
from portal.core.listing import ListQuery, Page
from portal.core.preset import Preset
from portal.core.session import Session, State
from portal.core.usage import Use


class Clock(Protocol):
    """Tells the time."""

    def __call__(self) -> datetime:
        """Now, in UTC, with its time zone."""
        ...


class Scheduler(Protocol):
    """Slurm. Every method raises Unavailable when Slurm does not answer."""

    def submit(self, user: str, session: str, spec: str, script: str) -> str:
        """Submit as the user and return the job id.

        `spec` is secret: it reaches the job without passing through Slurm. Raises InvalidRequest
        with Slurm's own words when Slurm refuses, OutcomeUnknown when the answer was lost.
        """
        ...

    def estimate(self, user: str, script: str) -> Estimate:
        """Slurm's guess when it would start this script's job; nothing is submitted."""
        ...

    def cancel(self, user: str, *job_ids: str) -> None:
        """Cancel as the user, all with one command; a job that is over already is fine."""
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
        """Up to `limit` bytes of the session's log from `offset` on; b"" when there is none."""
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

    def log_tail(self, user: str, session: str, lines: int, limit: int) -> bytes:
        """The last lines of the session's log, `limit` bytes at most; b"" when there is none.

        Raises Unavailable.
        """
        ...

    def log_size(self, user: str, session: str) -> int:
        """Bytes in the session's log; 0 when there is none."""
        ...


class Runners(Protocol):
    """The runners inside the jobs, reached through their gateways."""

    def start_app(self, session: Session, order: Mapping[str, object]) -> None:
        """Ask for an app to be started; asking twice starts it once. Raises Unavailable."""
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

    def remove(self, key: str) -> None:
        """Shut the way; a key that is not there is fine."""
        ...

    def lost(self) -> bool:
        """Whether HAProxy has forgotten the map (it was restarted)."""
        ...

    def fill(self, routes: Mapping[str, str]) -> None:
        """Give HAProxy the whole map again."""
        ...


class Resolver(Protocol):
    """Names of compute nodes."""

    def __call__(self, node: str) -> str:
        """IP address of a node; raises Unavailable."""
        ...


@dataclass(frozen=True)
class SlurmStatus:
    """When Slurm last answered the worker, and since when it has not."""

    answered: datetime | None
    failing_since: datetime | None
    message: str = ""


class SessionStore(Protocol):
    """The sessions' table. Every method is one transaction."""

    def add(
        self,
        sessions: Sequence[Session],
        key: str | None,
        fingerprint: str,
        env: Mapping[str, str],
    ) -> tuple[list[Session], bool]:
        """Store all sessions of a launch, or return (earlier ones, False) for the same key.

        Raises Conflict when the owner used the key for another request.
        """
        ...

    def env(self, session: str) -> dict[str, str]:
        """A session's environment variables, values and all."""
        ...

    def get(self, session: str) -> Session | None:
        """One session."""
        ...

    def change(self, session: str, when: Collection[State], **changes: object) -> Session | None:
        """Change a session if it is in one of these states; None when it was not."""
        ...

    def change_batch(self, batch: str, when: Collection[State], **changes: object) -> list[Session]:
        """Change those sessions of a launch that are in one of these states, and return them."""
        ...

    def forget(self, batch: str, sessions: Collection[str]) -> None:
        """Remove sessions of a launch that never came to be, and the launch's key."""
        ...

    def live(self) -> list[Session]:
        """All sessions that are not over."""
        ...

    def unclean(self) -> list[Session]:
        """All that are over and still have files."""
        ...

    def unexplained(self, text: str, since: datetime) -> list[Session]:
        """All that ended since then with this text as their explanation."""
        ...

    def ending(self, owner: str, before: datetime) -> list[Session]:
        """One owner's running sessions whose time is up before then, the next one first."""
        ...

    def some(self, sessions: Collection[str]) -> list[Session]:
        """Those of these sessions that exist, in any order."""
        ...

    def change_all(
        self, sessions: Collection[str], when: Collection[State], **changes: object
    ) -> list[Session]:
        """Change those of these sessions that are in one of these states, and return them."""
        ...

    def listing(self, query: ListQuery) -> Page:
        """One page of the list."""
        ...

    def counts(self, owner: str | None) -> dict[State, int]:
        """How many sessions there are in each state, of one person or of all."""
        ...

    def owners(self) -> list[str]:
        """Everybody who has ever had a session."""
        ...


class AccessStore(Protocol):
    """Apps that are open, and who may reach them."""

    def want_app(self, session: str, app: str, label: str) -> OpenApp:
        """The app's entry, made if there is none (then with this label)."""
        ...

    def set_app(self, session: str, app: str, state: AppState, message: str, log: str) -> None:
        """Note what the runner says of an app."""
        ...

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        ...

    def add_ticket(self, ticket: Ticket) -> None:
        """Remember a one-time ticket by its hash."""
        ...

    def take_ticket(self, ticket_hash: str, label: str, now: datetime) -> Ticket | None:
        """Use up a ticket; None when it is unknown, spent, expired or for another origin."""
        ...

    def add_grant(self, grant: Grant) -> None:
        """Remember that a browser may use an app."""
        ...

    def grant(self, label: str, cookie_hash: str) -> Grant | None:
        """The grant behind a cookie at an origin."""
        ...

    def grants(self, session: str | None = None, login: str | None = None) -> list[Grant]:
        """All grants, or those of one session or one login."""
        ...

    def drop_grants(self, grants: Sequence[Grant]) -> None:
        """Forget grants."""
        ...

    def close_session(self, session: str) -> None:
        """Forget all apps, tickets and grants of a session."""
        ...


class StatusStore(Protocol):
    """What the worker last learnt of the cluster."""

    def note_answer(self, now: datetime) -> None:
        """Slurm answered."""
        ...

    def note_failure(self, now: datetime, message: str) -> None:
        """Slurm did not answer; the first failure's time is kept."""
        ...

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered."""
        ...

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Keep the partitions for everybody."""
        ...

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        ...

    def save_limits(self, limits: Limits) -> None:
        """Keep Slurm's limits for everybody."""
        ...

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        ...

    def save_use(self, use: Use) -> None:
        """Keep who holds what at this look."""
        ...

    def use(self) -> Use:
        """Who held what at the last look."""
        ...


@dataclass(frozen=True)
class Login:
    """A browser's login or an API token; stored by the hash of its secret."""

    hash: str
    kind: str
    """"browser" or "token"."""
    user: str
    scopes: tuple[str, ...]
    expires: datetime


class LoginStore(Protocol):
    """Who is logged in: server-side, so that a login can be taken back at once."""

    def add_login(self, login: Login) -> None:
        """Remember a login."""
        ...

    def login(self, hash: str, now: datetime) -> Login | None:
        """The login with this hash, unless it has expired."""
        ...

    def extend_login(self, hash: str, expires: datetime) -> None:
        """A login in use lasts longer."""
        ...

    def drop_login(self, hash: str) -> None:
        """Log out."""
        ...

    def expire(self, now: datetime) -> None:
        """Forget logins and tickets that are past their time."""
        ...


class PresetStore(Protocol):
    """The presets' table. Every method is one transaction."""

    def all(self, owner: str) -> list[Preset]:
        """Somebody's presets, by name."""
        ...

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset."""
        ...

    def save(self, owner: str, preset: Preset, replace: bool) -> bool:
        """Keep it; False when there is one of this name that is not to be replaced."""
        ...

    def rename(self, owner: str, name: str, to: str) -> bool:
        """Give it another name; False when that one is taken."""
        ...

    def remove(self, owner: str, name: str) -> bool:
        """Forget it; whether there was one."""
        ...


class Note(Protocol):
    """Writes the journal; never raises, since what is noted has happened already."""

    def __call__(self, who: str, action: str, target: str = "", detail: str = "") -> None:
        """Write down who did what; never secrets."""
        ...


class RulesStore(Protocol):
    """What administrators decide, and the journal. Every method is one transaction.

    A change and its line in the journal are stored together or not at all. `seen` is the mark
    (core/administration.py) of what the author of a change had before their eyes; where something
    else is stored by now, Conflict is raised. None does not ask.
    """

    def templates(self) -> list[Template]:
        """All templates in their order."""
        ...

    def save_template(self, template: Template, seen: str | None, entry: Entry) -> None:
        """Make or replace a template."""
        ...

    def drop_template(self, name: str, entry: Entry) -> bool:
        """Delete a template; False when there is none."""
        ...

    def order_templates(self, names: Sequence[str], entry: Entry) -> None:
        """Put the templates into this order; names that are gone do not matter."""
        ...

    def image_rules(self) -> list[ImageRule]:
        """All rules about images."""
        ...

    def save_image_rule(self, rule: ImageRule, seen: str | None, entry: Entry) -> None:
        """Make or replace the rule about an image."""
        ...

    def site_rules(self) -> SiteRules:
        """The caps."""
        ...

    def save_site_rules(self, rules: SiteRules, seen: str | None, entry: Entry) -> None:
        """Replace the caps."""
        ...

    def note(self, entries: Sequence[Entry]) -> None:
        """Add lines to the journal; nothing ever changes one."""
        ...

    def journal(self, wanted: JournalFilter, limit: int, before: int | None) -> list[Entry]:
        """Lines, newest first, from those on whose id is below `before`."""
        ...

    def forget_journal(self, before: datetime) -> None:
        """Drop the lines of before a time."""
        ...


class Authenticator(Protocol):
    """Checks passwords against the cluster."""

    def __call__(self, user: str, password: str) -> bool:
        """Whether the login node takes this password for an ordinary account.

        Raises Unavailable when the login node does not answer.
        """
        ...
