"""All services of a running portal, built once by wiring.py."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from portal.config import Settings
from portal.core.apps.catalog import Catalog
from portal.core.cluster.gpu_offers import Gpus
from portal.core.interfaces.systems import Authenticator, Clock
from portal.services.admin.administration import Administration
from portal.services.admin.batch_settings import BatchSettings
from portal.services.admin.usage import Usage
from portal.services.apps.apps import Apps
from portal.services.apps.control import AppControl
from portal.services.apps.gate import AppGate
from portal.services.apps.host_agent import HostAgent
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.auth.provider_logins import ProviderLogins
from portal.services.auth.service_tokens import ServiceTokens
from portal.services.cluster import Cluster, ClusterReader
from portal.services.files.files import Files
from portal.services.files.servers import FileServers
from portal.services.files.shares import FolderShares
from portal.services.images.contents import ImageContents
from portal.services.jobs.composer import Composer
from portal.services.jobs.follower import JobFollower
from portal.services.jobs.jobs import Jobs
from portal.services.jobs.outputs import JobOutputs
from portal.services.jobs.templates import JobTemplates
from portal.services.jobs.usage import JobUse
from portal.services.launch.enlarge import Enlarger
from portal.services.launch.estimates import Estimates
from portal.services.launch.launcher import Launcher
from portal.services.launch.outlook import MaintenanceOutlook
from portal.services.launch.presets import Presets
from portal.services.launch.registry_logins import RegistryLogins
from portal.services.monitoring.monitoring import Monitoring
from portal.services.notices.follower import MaintenanceFollower
from portal.services.notices.notices import Notices
from portal.services.session.adoption import Adoption
from portal.services.session.housekeeping import Housekeeping
from portal.services.session.idle_culler import IdleCuller
from portal.services.session.lifecycle import Lifecycle
from portal.services.session.reconciler import Reconciler
from portal.services.session.runner_calls import RunnerCalls
from portal.services.session.session_history import SessionHistory
from portal.services.session.session_logs import SessionLogs
from portal.services.session.sessions import Sessions
from portal.services.storage import Storage


@dataclass(frozen=True)
class Services:
    """The services used by the web layer and the worker."""

    settings: Settings
    clock: Clock
    snapshot: Callable[[], AbstractContextManager[None]]
    """Reads inside are one transaction and see one state; nothing inside may wait for others."""
    catalog: Callable[[], Catalog]
    gpus: Gpus
    cluster: Cluster

    launcher: Launcher
    estimates: Estimates
    maintenance_outlook: MaintenanceOutlook
    presets: Presets
    registry_logins: RegistryLogins
    image_contents: ImageContents
    composer: Composer
    job_templates: JobTemplates
    enlarger: Enlarger

    sessions: Sessions
    lifecycle: Lifecycle
    session_logs: SessionLogs
    session_history: SessionHistory
    runner_calls: RunnerCalls
    adoption: Adoption

    jobs: Jobs
    job_outputs: JobOutputs
    job_use: JobUse

    apps: Apps
    gate: AppGate
    proxy: ProxyRoutes
    app_starter: AppStarter
    app_control: AppControl
    app_reports: AppReports
    ssh: SshAccess
    storage: Storage
    file_servers: FileServers
    files: Files
    shares: FolderShares

    administration: Administration
    notices: Notices
    usage: Usage
    batch_settings: BatchSettings
    authenticate: Authenticator
    logins: Logins
    provider_logins: ProviderLogins | None
    """None: the site has no OpenID provider."""
    service_tokens: ServiceTokens
    login_attempts: LoginAttempts

    monitoring: Monitoring

    # Used by the worker only
    account_watch: AccountWatch
    cluster_reader: ClusterReader
    reconciler: Reconciler
    housekeeping: Housekeeping
    idle_culler: IdleCuller
    job_follower: JobFollower
    maintenance_follower: MaintenanceFollower

    host_agent: HostAgent | None
    """Where there may be several portal hosts; it runs on each of them."""
