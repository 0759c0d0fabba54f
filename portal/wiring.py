"""Builds the adapters and passes them to the services."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from portal.adapters.catalog import FolderCatalog
from portal.adapters.certificates import CertificateAuthority
from portal.adapters.files.host import SshFileServers
from portal.adapters.haproxy.agent import machine_id
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.adapters.images.apptainer import Apptainer
from portal.adapters.images.cluster import SlurmRunner
from portal.adapters.images.folder import FolderImages, read_inventory
from portal.adapters.images.machine import detect_machine
from portal.adapters.images.recipes import FolderRecipes
from portal.adapters.images.roots import LocalRoots
from portal.adapters.images.site import INSIDE, Site
from portal.adapters.images.workspace import LocalWorkspaces
from portal.adapters.mail import SmtpServer
from portal.adapters.monitoring.commands import MeasuredTransport
from portal.adapters.monitoring.machine import expiries, room_in
from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.adapters.oidc.provider import LocalAccountsFile, OidcProvider
from portal.adapters.runner_client import GatewayRunners, resolve
from portal.adapters.settings_file import LocalSettingsFile
from portal.adapters.slurm.client import Slurm
from portal.adapters.slurm.job_usage import SlurmMeter
from portal.adapters.slurm.jobs import SlurmJobs
from portal.adapters.slurm.pyslurm.process import PySlurmProcess
from portal.adapters.slurm.submitter import LoginNodeSubmitter
from portal.adapters.ssh.accounts import LoginNodeAccounts
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.login.passwords import PasswordCheck
from portal.adapters.ssh.per_user import ThreadBudget
from portal.adapters.ssh.pool import LEAST_OF_PROCESS, MOST_ON_HOST
from portal.adapters.ssh.transport import SshTransport
from portal.config import Settings
from portal.core.files.server import StartOrder
from portal.core.hosts import Holder, HostStatus
from portal.core.interfaces.images import ImageStore, Note, Recipes
from portal.core.interfaces.systems import Clock
from portal.core.launch.mounts import storage_of
from portal.core.session.session import Home, Session
from portal.core.session_job.description import JobSettings
from portal.services.assembly import Services
from portal.services.files.starts import THREADS as STARTS
from portal.services.images.builder import ImageBuilder
from portal.services.images.keeper import ImageKeeper
from portal.services.launch.submissions import THREADS as SUBMISSIONS
from portal.services.owner_queue import OwnerQueue, RunForOwner, run_now
from portal.services.request_waits import LONG_WAITS
from portal.services.systems import Monitors, Systems
from portal.store.encryption import Sealer
from portal.store.engine import CheckWriter, open_database
from portal.store.hosts import HostStore, LeaseStore
from portal.store.jobs.queued import queued_jobs
from portal.store.sessions import SessionStore
from portal.store.stores import Stores


def now() -> datetime:
    """The system clock."""
    return datetime.now(UTC)


def wire(
    settings: Settings,
    run_for_owner: RunForOwner = run_now,
    metrics: Path | None = None,
    check_writer: CheckWriter | None = None,
    threads: int = 0,
) -> Services:
    """Build all services on the real systems.

    Processes with the same `metrics` folder share counters; `check_writer`: see open_database.
    `threads`: the threads of a web process, of which users may occupy three quarters.
    """
    # Users' operations and the requests that wait long for background threads leave one to others.
    most = min(threads * 3 // 4, threads - LONG_WAITS - 1)
    budget = ThreadBudget(most) if threads else None
    systems = real_systems(settings, metrics, check_writer, budget)
    if not threads:
        return Services(settings, systems, run_for_owner)
    launches, starts = OwnerQueue(SUBMISSIONS), OwnerQueue(STARTS)
    launches.start()
    starts.start()
    services = Services(settings, systems, run_for_owner, launches, starts)
    services.waiting_sessions.start()
    return services


def lease_of(settings: Settings) -> LeaseStore:
    """The lease of the worker. With SQLite, its holder already has the lock of the worker."""
    engine = open_database(settings.state.database_url)
    return LeaseStore(engine, forced=engine.dialect.name == "sqlite")


def workers_of(settings: Settings) -> tuple[Holder | None, Sequence[HostStatus]]:
    """The worker that acts for the site, and the recently active portal hosts."""
    engine = open_database(settings.state.database_url)
    try:
        return LeaseStore(engine).holder(), HostStore(engine).hosts()
    finally:
        engine.dispose()


def real_systems(
    settings: Settings,
    metrics: Path | None = None,
    check_writer: CheckWriter | None = None,
    budget: ThreadBudget | None = None,
) -> Systems:
    """Build the adapters of the systems in the settings."""
    authority, login = CertificateAuthority(settings.state.ca_file("")), settings.login
    measures, hosts = PrometheusMeasures(metrics), HostOrder(login.all_hosts, login.port)
    directory, operator = settings.sessions.directory, settings.slurm.operator
    most = ssh_connections_of_process(settings)
    transport = MeasuredTransport(login, authority, operator, hosts, measures, budget, most)
    engine = open_database(settings.state.database_url, check_writer)
    stores = Stores(engine, Sealer(settings.state.keys))
    apps, seconds = stores.access.image_apps, settings.slurm.command_seconds
    return Systems(
        stores=stores,
        catalog=FolderCatalog(settings.sessions.app_folders, settings.sessions.images, apps),
        inventory=lambda image: read_inventory(Path(image.path)),
        scheduler=Slurm(
            transport,
            settings.login.reader,
            directory,
            seconds,
            operator,
            queue_source(settings),
        ),
        job_meter=SlurmMeter(transport, settings.login.reader),
        slurm_jobs=SlurmJobs(transport, settings.login.reader, seconds),
        submitter=LoginNodeSubmitter(transport, settings.batch.command, seconds),
        files=HomeFiles(transport, directory, settings.sessions.storage),
        file_servers=_file_servers(settings, authority, transport, budget),
        file_server_order=partial(file_server_order, settings),
        certificates=authority,
        routes=HaproxyRoutes(settings.state.run),
        machine=machine_id(settings.state.run) if settings.state.several_hosts else "",
        runners=GatewayRunners(settings.state.ca_file(""), budget),
        resolve=resolve,
        accounts=LoginNodeAccounts(settings.login, authority, transport, hosts),
        authenticate=PasswordCheck(
            settings.login, transport.account, hosts, budget, settings.web.log_ins_of_process
        ),
        job_settings=_job_settings(settings),
        batch_settings_file=_batch_settings_file(settings),
        monitors=_monitors(settings, measures),
        clock=now,
        identity_provider=identity_provider(settings, now, budget),
        mail_server=SmtpServer(settings.mail) if settings.mail.host else None,
        secret_key=Path(settings.state.directory, "secret_key").read_text,
        accounts_file=LocalAccountsFile(settings.oidc.accounts_file),
    )


def _batch_settings_file(settings: Settings) -> LocalSettingsFile | None:
    file = settings.batch.settings_file
    return LocalSettingsFile(file) if file else None


def _monitors(settings: Settings, measures: PrometheusMeasures) -> Monitors:
    return Monitors(
        measures=measures,
        exposition=measures.exposition,
        disk=room_in,
        expiries=partial(expiries, settings.state.ca_file(""), settings.web.tls_certificate),
    )


def queue_source(settings: Settings) -> Callable[[], str | None]:
    """The function that reads the queue according to `slurm.reader`; it returns None for squeue."""
    if settings.slurm.reader == "pyslurm":
        return PySlurmProcess(settings.slurm.command_seconds).queue
    return lambda: None


def identity_provider(
    settings: Settings, clock: Clock, budget: ThreadBudget | None = None
) -> OidcProvider | None:
    """The client of the site's OpenID provider, if there is one; sends no request yet."""
    if not settings.oidc.enabled:
        return None
    return OidcProvider(settings.oidc, settings.web.own_origin, clock, budget)


def _file_servers(
    settings: Settings,
    authority: CertificateAuthority,
    transport: SshTransport,
    budget: ThreadBudget | None,
) -> SshFileServers:
    login = settings.login
    if login.files_host and login.all_hosts != (login.files_host,):
        at, most = login.at(login.files_host), ssh_connections_of_process(settings)
        transport = SshTransport(at, authority, budget=budget, most=most)
    return SshFileServers(transport, settings.batch.command, settings.state.ca_file(""), budget)


def ssh_connections_of_process(settings: Settings) -> int:
    """A process's part of the host's SSH connections: of the web application, or the worker."""
    login = settings.login
    hosts = 2 if login.files_host and login.all_hosts != (login.files_host,) else 1
    return max(MOST_ON_HOST // (settings.web.processes + 1) // hosts, LEAST_OF_PROCESS)


def file_server_order(
    settings: Settings, user: str, id: str, certificate: str, client_ca: str
) -> StartOrder:
    """The parameters of a user's file server, from the settings."""
    files, storage = settings.files, storage_of(user, settings.sessions.storage)
    roots = {name: path.replace("{user}", user) for name, path in files.roots.items()}
    return StartOrder(
        id=id,
        certificate=certificate,
        client_ca=client_ca,
        roots={"home": "", "storage": storage} | roots,
        ports=files.ports,
        idle_minutes=files.idle_minutes,
        upload_hours=files.upload_hours,
        shared=settings.sessions.storage,
        quota=files.quota,
        fetch={
            "hosts": files.fetch_hosts,
            "http": files.fetch_http,
            "proxy": files.fetch_proxy,
        },
    )


class ImageFactory(NamedTuple):
    """Services and stores for building and testing images."""

    builder: ImageBuilder
    recipes: Recipes
    store: ImageStore
    labels: Callable[[Path], dict[str, str]]
    """Returns the labels of an image's file."""
    run_on_cluster: Callable[[str, Sequence[str], Sequence[str]], int]
    """Runs `slipway` as a job with this name, these srun options and these arguments."""


def image_factory(images: Path, recipes: Path, note: Note) -> ImageFactory:
    """Create the services for images on this machine, without settings and database."""
    # If a namespace is refused, unshare hangs while mapping ids.
    ids, site, store = detect_machine().maps_ids, Site.of_machine(), FolderImages(images)
    containers = Apptainer(note, ids, Path("/", INSIDE) if site.ca else None)
    bases = os.environ.get("SLIPWAY_BASES") or Path.home() / ".cache/slipway/bases"
    workspaces = LocalWorkspaces(ids)
    builder = ImageBuilder(
        containers=containers,
        roots=LocalRoots(Path(bases), site, ids, note),
        store=store,
        workspaces=workspaces,
        machine=detect_machine,
        clock=now,
        note=note,
        test_binds={
            "/checks": recipes.absolute() / "checks",
            "/apps": recipes.absolute().parent / "apps",
            "/opt/slipway/jupyter": recipes.absolute() / "toolkit" / "jupyter",
        },
    )
    return ImageFactory(
        builder, FolderRecipes(recipes), store, containers.labels, SlurmRunner(note)
    )


def image_keeper(settings: Settings) -> ImageKeeper:
    """The keeper of the site's images, with the sessions and jobs in the database."""
    engine = open_database(settings.state.database_url)
    return ImageKeeper(
        store=FolderImages(Path(settings.sessions.images)),
        sessions=SessionStore(engine, Sealer(settings.state.keys)).live,
        jobs=partial(queued_jobs, engine),
        clock=now,
    )


def live_sessions(settings: Settings) -> list[Session]:
    """All live sessions."""
    engine = open_database(settings.state.database_url)
    try:
        return SessionStore(engine, Sealer(settings.state.keys)).live()
    finally:
        engine.dispose()


def log_in_with_next(settings: Settings) -> None:
    """Log in on all hosts that accept users' certificates, with a certificate of the next key.

    Raises Unavailable.
    """
    authority, login = (
        CertificateAuthority(settings.state.ca_file(""), "user_ca.next"),
        settings.login,
    )
    for host in dict.fromkeys((*login.all_hosts, login.files_host or login.host)):
        SshTransport(login.at(host), authority).run(login.reader, ["true"])


def _job_settings(settings: Settings) -> JobSettings:
    template = Path(settings.sessions.templates) / "job" / "session.sh.j2"
    return JobSettings(
        template=template.read_text(encoding="utf-8"),
        toolkit=settings.sessions.toolkit,
        directory=settings.sessions.directory,
        callback=settings.sessions.callback,
        gateway_ports=settings.sessions.gateway_ports,
        heartbeat_seconds=settings.sessions.heartbeat_seconds,
        callback_minutes=settings.sessions.callback_minutes,
        storage=settings.sessions.storage,
        dotfiles=settings.sessions.dotfiles,
        home=Home(settings.sessions.home),
        own_images=settings.images.rules(settings.batch.command),
    )
