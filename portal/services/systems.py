"""The stores and external systems on which the services are built."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from portal.core.apps.catalog import Catalog, Image
from portal.core.files.server import StartOrder
from portal.core.images.inventory import Inventory
from portal.core.interfaces.access import AccessStore
from portal.core.interfaces.administration import AdministrationStore
from portal.core.interfaces.auth import (
    Accounts,
    AccountsFile,
    AttemptStore,
    IdentityProvider,
    LoginStore,
    ServiceTokenStore,
)
from portal.core.interfaces.files.servers import FileServerHost, FileServerStore
from portal.core.interfaces.files.shares import ShareStore
from portal.core.interfaces.hosts.stores import HostStore
from portal.core.interfaces.job_usage import JobMeter, JobPageStore
from portal.core.interfaces.jobs import JobScheduler, JobStore
from portal.core.interfaces.monitoring.measures import Disk, FigureStore, HeartbeatStore, Measures
from portal.core.interfaces.presets import PresetStore
from portal.core.interfaces.registries import RegistryLoginStore
from portal.core.interfaces.samples import SampleStore
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.site.notices import NoticeStore
from portal.core.interfaces.site.usage import UsageStore
from portal.core.interfaces.status import StatusStore
from portal.core.interfaces.submission import JobTemplateStore, SubmissionStore, Submitter
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
