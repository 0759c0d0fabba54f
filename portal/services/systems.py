"""The stores and external systems on which the services are built."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from portal.core.apps.catalog import Catalog, Image
from portal.core.files.server import StartOrder
from portal.core.images.inventory import Inventory
from portal.core.interfaces.auth import Accounts, AccountsFile, IdentityProvider
from portal.core.interfaces.file_servers import FileServerHost
from portal.core.interfaces.jobs import JobMeter, JobScheduler, Submitter
from portal.core.interfaces.monitoring import Disk, Measures
from portal.core.interfaces.systems import (
    Authenticator,
    Certificates,
    Clock,
    Resolver,
    Routes,
    Runners,
    Scheduler,
    SettingsFile,
    UserFiles,
)
from portal.core.job.description import JobSettings
from portal.core.monitoring import Snapshot
from portal.store.access import AccessStore
from portal.store.administration import AdministrationStore
from portal.store.attempts import AttemptStore
from portal.store.figures import FigureStore
from portal.store.file_servers import FileServerStore
from portal.store.heartbeats import HeartbeatStore
from portal.store.hosts import HostStore
from portal.store.job_templates import JobTemplateStore
from portal.store.jobs.pages import JobPageStore
from portal.store.jobs.store import JobStore
from portal.store.logins import LoginStore
from portal.store.notices import NoticeStore
from portal.store.presets import PresetStore
from portal.store.registry_logins import RegistryLoginStore
from portal.store.samples import SampleStore
from portal.store.service_tokens import ServiceTokenStore
from portal.store.sessions import SessionStore
from portal.store.shares import ShareStore
from portal.store.status import StatusStore
from portal.store.submissions import SubmissionStore
from portal.store.usage import UsageStore


@dataclass(frozen=True)
class Stores:
    """The database's stores, by subject."""

    sessions: SessionStore
    jobs: JobStore
    samples: SampleStore
    status: StatusStore
    access: AccessStore
    files: FileServerStore
    shares: ShareStore
    administration: AdministrationStore
    notices: NoticeStore
    usage: UsageStore
    presets: PresetStore
    registry_logins: RegistryLoginStore
    job_templates: JobTemplateStore
    submissions: SubmissionStore
    logins: LoginStore
    service_tokens: ServiceTokenStore
    attempts: AttemptStore
    job_pages: JobPageStore
    heartbeats: HeartbeatStore
    figures: FigureStore
    hosts: HostStore
    snapshot: Callable[[], AbstractContextManager[None]]
    """Reads inside are one transaction and see one state; nothing inside may wait for others."""


@dataclass(frozen=True)
class Monitors:
    """What the portal is watched with."""

    measures: Measures
    exposition: Callable[[Snapshot], bytes]
    """Everything that Prometheus reads, as text."""
    disk: Disk
    expiries: Callable[[], dict[str, datetime]]
    """When the portal's certificates expire, by name."""


@dataclass(frozen=True)
class Systems:
    """Everything outside of the portal's code; tests replace some of it by fakes."""

    stores: Stores
    catalog: Callable[[], Catalog]
    inventory: Callable[[Image], Inventory | None]
    """What is inside an image; None if nothing wrote it down."""
    scheduler: Scheduler
    job_meter: JobMeter
    slurm_jobs: JobScheduler
    submitter: Submitter
    files: UserFiles
    file_servers: FileServerHost
    file_server_order: Callable[[str, str, str, str], StartOrder]
    """What a file server is told: user, id, certificate with key, and the clients' authority."""
    certificates: Certificates
    routes: Routes
    machine: str
    """What tells this machine from another one of the same name."""
    runners: Runners
    resolve: Resolver
    accounts: Accounts
    authenticate: Authenticator
    job_settings: JobSettings
    batch_settings_file: SettingsFile | None
    """Where login nodes read the settings of `slipway sbatch`; None: nowhere."""
    monitors: Monitors
    clock: Clock
    identity_provider: IdentityProvider | None = None
    """The OpenID provider; None: the site has none."""
    accounts_file: AccountsFile = lambda: None
    """Accounts by claim of that provider."""
