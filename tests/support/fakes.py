"""Fakes for external systems only: HAProxy, runners, accounts; Slurm is in support/slurm.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine
from sqlalchemy.util import LRUCache
from sqlmodel import Session as Database
from sqlmodel import col, delete, update

from portal.adapters.catalog import FolderCatalog
from portal.adapters.images.folder import read_inventory
from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.adapters.oidc.provider import LocalAccountsFile
from portal.adapters.slurm.client import Slurm
from portal.adapters.slurm.job_usage import SlurmMeter
from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.slurm.submitter import LoginNodeSubmitter
from portal.adapters.ssh.home_files import HomeFiles
from portal.config import Settings
from portal.config.state import StateSettings
from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.core.auth.accounts import AccountStatus, Identity
from portal.core.auth.person import Person
from portal.core.cluster.job_reports import Estimate
from portal.core.images.inventory import Inventory, Package
from portal.core.interfaces.systems import Scheduler
from portal.core.launch.request import LaunchRequest
from portal.core.launch.templates import Template
from portal.core.monitoring import Room
from portal.core.session.idle import Traffic
from portal.core.session.session import Home, Session
from portal.core.session_job.description import JobSettings
from portal.core.session_job.runner_protocol import StartRequest
from portal.errors import Unavailable
from portal.services.apps.apps import Apps
from portal.services.apps.gate import AppGate
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.assembly import Services
from portal.services.owner_queue import RunForOwner, run_now
from portal.services.session.sessions import Sessions
from portal.services.systems import Monitors, Systems
from portal.store.access import AccessStore
from portal.store.encryption import Sealer, make_key
from portal.store.engine import open_database
from portal.store.sessions import SessionStore
from portal.store.status import StatusStore
from portal.store.stores import Stores
from portal.store.tables import SessionRow, TemplateRow
from portal.wiring import file_server_order, identity_provider
from tests.support.clock import FakeClock
from tests.support.file_servers import FakeFileServers
from tests.support.paths import ROOT
from tests.support.slurm import FakeSlurm


class FakeRoutes:
    """HAProxy's route map."""

    def __init__(self) -> None:
        self.map: dict[str, str] = {}
        self.alive = False
        self.restarts = 0
        self.sent: dict[str, Traffic] = {}
        self.background: list[str] = []
        self.paths: dict[str, str] = {}
        self.unreachable = False

    def traffic(self) -> dict[str, Traffic]:
        """Traffic counted from browsers."""
        return dict(self.sent)

    def set_background_requests(self, paths: Collection[str]) -> None:
        """Set the requests that do not count as use."""
        self.background = list(paths)

    def exclusively(self) -> AbstractContextManager[None]:
        """Nobody else changes it."""
        return nullcontext()

    def add(self, key: str, target: str) -> None:
        """Add a route."""
        self.add_all({key: target})

    def add_all(self, routes: Mapping[str, str]) -> None:
        """Add routes."""
        self.map.update(routes)

    def add_path(self, path: str, key: str) -> None:
        """Add a path of JupyterHub's."""
        self.paths[path] = key

    def set_paths(self, paths: Mapping[str, str]) -> None:
        """Set all paths of JupyterHub's."""
        self.paths = dict(paths)

    def remove(self, *keys: str) -> None:
        """Remove routes."""
        if self.unreachable:
            raise Unavailable("the proxy does not answer")
        for key in keys:
            self.map.pop(key, None)

    def is_lost(self) -> bool:
        """Whether HAProxy lost its map by a restart."""
        return not self.alive

    def entries(self) -> dict[str, str]:
        """The current routes."""
        return dict(self.map)

    def generation(self) -> str:
        """The number of restarts."""
        return str(self.restarts)

    def set_complete(self, generation: str) -> None:
        """All routes were restored after a restart."""
        self.alive = self.alive or generation == self.generation()


class FakeRunners:
    """Runners that record their requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, StartRequest]] = []
        self.stopped: list[str] = []
        self.unreachable = False

    def start_app(self, session: Session, request: StartRequest) -> None:
        """Record a start request."""
        if self.unreachable:
            raise Unavailable("the node does not answer")
        self.requests.append((session.id, request))

    def stop_app(self, session: Session, app: str) -> None:
        """Record a stop request."""
        if self.unreachable:
            raise Unavailable("the node does not answer")
        self.stopped.append(app)


class FakeAccounts:
    """The login node's account database."""

    def __init__(self) -> None:
        self.removed: set[str] = set()
        self.refused: set[str] = set()
        self.passwords: dict[str, str] = {}
        self.identities = {
            "alice": Identity(1001, frozenset({"alice", "research"})),
            "bob": Identity(1002, frozenset({"bob"})),
            "admin": Identity(1003, frozenset({"admin"})),
            "root": Identity(0, frozenset({"root", "research"})),
        }
        self.silent = False
        self.asked: list[str] = []

    def missing(self, names: Collection[str]) -> set[str]:
        """The accounts that were removed."""
        if self.silent:
            raise Unavailable("the login node does not answer")
        return set(names) & self.removed

    def identity(self, user: str) -> Identity | None:
        """The account's number and groups."""
        self.asked.append(user)
        if self.silent:
            raise Unavailable("the login node does not answer")
        return None if user in self.removed else self.identities.get(user)

    def standing(self, user: str) -> AccountStatus:
        """Whether the account may log in, and its password state."""
        self.asked.append(user)
        if self.silent:
            raise Unavailable("the login node does not answer")
        return AccountStatus(user not in self.refused, self.passwords.get(user, "P"))


class FakeCertificates:
    """A CA that signs every request."""

    def sign_gateway(self, session: str, request_pem: str) -> str:
        """Sign a request."""
        return f"certificate of {session}"

    def issue_gateway(self, id: str) -> str:
        """A key with its certificate."""
        return f"key and certificate of {id}"

    def client_ca(self) -> str:
        """PEM."""
        return "client ca"

    def server_ca(self) -> str:
        """PEM."""
        return "server ca"


TEMPLATE = "#!/bin/bash\n#SBATCH --job-name={{ job.session }}\n"

APPS = {
    "jupyterlab": AppSpec(name="jupyterlab", title="JupyterLab", path="/lab", files="/lab/tree",
                          ready="/api", script="jupyter lab"),
    "notebook": AppSpec(name="notebook", title="Notebook", path="/tree", shares="jupyterlab"),
    "terminal": AppSpec(name="terminal", title="Terminal", script="ttyd"),
    "board": AppSpec(name="board", title="Board", script="board", public=True),
    "jupyterhub": AppSpec(name="jupyterhub", title="JupyterHub", kind="hub", ready="/api",
                          detect=("jupyterhub-singleuser",), script="jupyterhub-singleuser"),
    "any": AppSpec(name="any", title="Any web app", script="any", asks="Its command"),
}  # fmt: skip

CATALOG = Catalog(
    apps=APPS,
    images=(
        Image(environment="python", version="3.13", path="/images/python/3.13/image.sif",
              title="Python", apps=("jupyterlab", "notebook", "terminal", "board", "any")),
        Image(environment="python", version="3.12", path="/images/python/3.12/image.sif",
              title="Python", apps=("terminal",)),
    ),
)  # fmt: skip

INVENTORIES = {
    ("python", "3.13"): Inventory(
        environment="python", version="3.13", title="Python", sources="5" * 64, origin="trixie",
        arguments={"GPU": "no"}, architecture="amd64", system="Debian GNU/Linux 13 (trixie)",
        packages=(
            Package("deb", "libc6", "2.41-12"), Package("deb", "python3", "3.13.5-1"),
            Package("pip", "ipykernel", "6.30.1"), Package("pip", "numpy", "2.3.1"),
        ),
        digest="d" * 64, size=300 << 20, built=datetime(2026, 11, 2, 3, 4, tzinfo=UTC),
        apptainer="1.4.5",
    ),
}  # fmt: skip
"""What is inside the images; nothing wrote it down for the others."""

ROOMY = Room(free=50 << 30, total=100 << 30)
"""A disk that is half full."""

CODES: dict[str, str] = {}
"""What users need besides their passwords."""


def check_password(user: str, password: str, code: str = "") -> str:
    """The login node's check."""
    right = PASSWORDS.get(user) == password and CODES.get(user, code) == code
    return user if right else ""


PASSWORDS = {"alice": "wonderland", "bob": "builder", "admin": "root-of-all"}


class WorkerTasks:
    """The worker's periodic tasks, each run once per call."""

    def __init__(self, services: Services) -> None:
        self.poll = services.reconciler.poll
        self.follow = services.job_follower.follow
        self.read_texts = services.job_follower.read_texts
        self.settle = services.job_follower.settle
        self.catch_up = services.job_follower.catch_up
        self.forget = services.job_follower.forget
        self.read_partitions = services.cluster_reader.read_partitions
        self.read_limits = services.cluster_reader.read_limits
        self.retry_app_starts = services.housekeeping.retry_app_starts
        self.prepare_requeued = services.housekeeping.prepare_requeued
        self.clean = services.housekeeping.clean
        self.follow_maintenance = services.maintenance_follower.follow
        self.ask_who_cancelled = services.housekeeping.ask_who_cancelled


@dataclass
class World:
    """A complete portal over fakes of the external systems."""

    clock: FakeClock
    slurm: FakeSlurm
    routes: FakeRoutes
    runners: FakeRunners
    accounts: FakeAccounts
    engine: Engine
    systems: Systems
    services: Services
    file_servers: FakeFileServers

    @property
    def store(self) -> SessionStore:
        """The session store."""
        return self.systems.stores.sessions

    @property
    def status(self) -> StatusStore:
        """The store of Slurm's last status."""
        return self.systems.stores.status

    @property
    def access_store(self) -> AccessStore:
        """The store of open apps, tickets and grants."""
        return self.systems.stores.access

    @property
    def scheduler(self) -> Scheduler:
        """Slurm's commands over the fake login node."""
        return self.systems.scheduler

    def store_templates(self, *templates: Template) -> None:
        """Have these resource templates only, in this order."""
        with Database(self.engine) as db:
            db.exec(delete(TemplateRow))
            db.add_all(
                TemplateRow(**template.model_dump() | {"place": place})
                for place, template in enumerate(templates)
            )
            db.commit()

    @property
    def sessions(self) -> Sessions:
        """Use cases: read and end sessions."""
        return self.services.sessions

    @property
    def apps(self) -> Apps:
        """Use cases: open and close apps."""
        return self.services.apps

    @property
    def gate(self) -> AppGate:
        """Handles browsers at the apps' origins."""
        return self.services.gate

    @property
    def proxy(self) -> ProxyRoutes:
        """Syncs HAProxy's route map."""
        return self.services.proxy

    @property
    def reports(self) -> AppReports:
        """Handles the runners' app reports."""
        return self.services.app_reports

    @property
    def worker(self) -> WorkerTasks:
        """The worker's tasks."""
        return WorkerTasks(self.services)

    def force(self, session: str, **columns: object) -> Session:
        """Write any columns of a session, including its state, bypassing the portal."""
        with Database(self.engine) as db:
            db.exec(update(SessionRow).where(col(SessionRow.id) == session).values(**columns))
            db.commit()
        found = self.store.get(session)
        assert found is not None
        return found

    def launch(self, person: Person, request: LaunchRequest, key: str | None = None) -> Session:
        """Launch a single session."""
        return self.launch_all(person, request, key)[0]

    def estimate(self, person: Person, request: LaunchRequest) -> Estimate | None:
        """Slurm's estimate for a request."""
        return self.services.estimates.estimate(self.services.launch_checks.plan(person, request))

    def launch_all(
        self, person: Person, request: LaunchRequest, key: str | None = None
    ) -> list[Session]:
        """Launch as many sessions as requested."""
        plan = self.services.launch_checks.plan(person, request, key)
        return self.services.launcher.launch(plan)


@cache
def empty_database() -> tuple[bytes, Engine]:
    """An SQLite file with all tables, and its engine; once, since it takes longer than a test."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "slipway.db"
        engine = open_database(f"sqlite:///{file}")
        engine._compiled_cache = LRUCache(5000)
        SessionRow.metadata.create_all(engine)
        engine.dispose()
        return file.read_bytes(), engine


def fresh_database(state: StateSettings) -> Engine:
    """The settings' database, which is made if it is missing."""
    engine = open_database(state.database_url)
    if state.database:
        SessionRow.metadata.create_all(engine)
        return engine
    content, first = empty_database()
    file = Path(state.directory) / "slipway.db"
    if not file.exists():
        file.write_bytes(content)
    # Statements are compiled once for all tests instead of for each database.
    engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
    return engine


def _inventory(image: Image) -> Inventory | None:
    known = INVENTORIES.get((image.environment, image.version))
    return known or read_inventory(Path(image.path))


def make_world(
    settings: Settings,
    routes: FakeRoutes | None = None,
    run_for_owner: RunForOwner = run_now,
    images: Path | None = None,
) -> World:
    """Build a world; the database is real, SQLite in the settings' state directory.

    `images`: a folder with the site's images in the place of CATALOG's.
    """
    clock, accounts = FakeClock(), FakeAccounts()
    slurm, runners = FakeSlurm(clock), FakeRunners()
    measures = PrometheusMeasures()
    file_servers = FakeFileServers(Path(settings.state.directory))
    routes = routes or FakeRoutes()
    engine = fresh_database(settings.state)
    if not settings.state.keys.exists():
        make_key(settings.state.keys)
    systems = Systems(
        stores=Stores(engine, Sealer(settings.state.keys)),
        catalog=FolderCatalog((str(ROOT / "apps"),), str(images)) if images else lambda: CATALOG,
        inventory=_inventory,
        scheduler=Slurm(slurm, "slipway", ".slipway", 20, settings.slurm.operator),
        job_meter=SlurmMeter(slurm, "slipway"),
        slurm_jobs=SlurmJobs(slurm, "slipway", 20),
        submitter=LoginNodeSubmitter(slurm, "/usr/local/bin/slipway", 20),
        files=HomeFiles(slurm, ".slipway", "storage"),
        file_servers=file_servers,
        file_server_order=partial(file_server_order, settings),
        certificates=FakeCertificates(),
        routes=routes,
        machine="machine",
        runners=runners,
        resolve=lambda node: {"n1": "10.0.0.1", "n2": "10.0.0.2"}.get(node, "127.0.0.1"),
        accounts=accounts,
        authenticate=check_password,
        batch_settings_file=None,
        job_settings=JobSettings(
            TEMPLATE,
            "/srv/toolkit.sqsh",
            ".slipway",
            "https://portal:8443",
            (0, 0),
            10,
            "storage",
            home=Home(settings.sessions.home),
            own_images=settings.images.rules(settings.batch.command),
        ),
        monitors=Monitors(
            measures=measures,
            exposition=measures.exposition,
            disk=lambda folder: ROOMY,
            expiries=lambda: {"server": clock.now + timedelta(days=300)},
        ),
        clock=clock,
        identity_provider=identity_provider(settings, clock),
        accounts_file=LocalAccountsFile(settings.oidc.accounts_file),
    )
    services = Services(settings, systems, run_for_owner)
    return World(clock, slurm, routes, runners, accounts, engine, systems, services, file_servers)
