"""The stores and external systems on which the services are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from portal.core.apps.catalog import Catalog, Image
from portal.core.files.server import StartOrder
from portal.core.images.inventory import Inventory
from portal.core.interfaces.auth import Accounts, AccountsFile, IdentityProvider
from portal.core.interfaces.file_servers import FileServerHost
from portal.core.interfaces.jobs import JobMeter, JobScheduler, Submitter
from portal.core.interfaces.mail import MailServer
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
from portal.core.monitoring import Snapshot
from portal.core.session_job.description import JobSettings
from portal.store.stores import Stores


@dataclass(frozen=True)
class Monitors:
    """Metrics, and the figures of this machine for the readiness check."""

    measures: Measures
    exposition: Callable[[Snapshot], bytes]
    """The metrics in Prometheus' text format."""
    disk: Disk
    expiries: Callable[[], dict[str, datetime]]
    """When the portal's certificates expire, by name."""


@dataclass(frozen=True)
class Systems:
    """The external systems and the database; tests replace some of them by fakes."""

    stores: Stores
    catalog: Callable[[], Catalog]
    inventory: Callable[[Image], Inventory | None]
    """The inventory of an image; None if it has none."""
    scheduler: Scheduler
    job_meter: JobMeter
    slurm_jobs: JobScheduler
    submitter: Submitter
    files: UserFiles
    file_servers: FileServerHost
    file_server_order: Callable[[str, str, str, str], StartOrder]
    """The start order of a file server, from: user, id, certificate with key, clients' CA."""
    certificates: Certificates
    routes: Routes
    machine: str
    """An id that distinguishes this machine from another of the same name."""
    runners: Runners
    resolve: Resolver
    accounts: Accounts
    authenticate: Authenticator
    job_settings: JobSettings
    batch_settings_file: SettingsFile | None
    """The file with the settings of `slipway sbatch` for login nodes; None: there is none."""
    monitors: Monitors
    clock: Clock
    identity_provider: IdentityProvider | None = None
    """The OpenID provider; None: the site has none."""
    mail_server: MailServer | None = None
    """None: the site has none."""
    secret_key: Callable[[], str] = lambda: ""
    """The portal's own key, which signs links that work without a log-in."""
    accounts_file: AccountsFile = lambda: None
    """Accounts by claim of that provider."""
