"""All services of the portal, built from its settings and the external systems."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

from portal.config import Settings
from portal.core.admin.batch_settings import BatchSite
from portal.core.changes import ChangeNumbers
from portal.services.admin.administration import Administration, caller_address
from portal.services.admin.batch_settings import BatchSettings
from portal.services.admin.usage_report import Usage
from portal.services.apps.apps import Apps
from portal.services.apps.gate import AppGate
from portal.services.apps.host_agent import HostAgent
from portal.services.apps.hosts import OneHost, SeveralHosts
from portal.services.apps.origins import AppOrigins
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.administrators import Administrators
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.auth.provider_logins import ProviderLogins, ProviderTerms
from portal.services.auth.service_tokens import ServiceTokens
from portal.services.cluster import Cluster, ClusterReader
from portal.services.extending import Extender
from portal.services.files.files import Files
from portal.services.files.servers import FileServers
from portal.services.files.shares import FolderShares
from portal.services.files.starts import Starts
from portal.services.images.contents import ImageContents
from portal.services.jobs.composer import Composer
from portal.services.jobs.follower import JobFollower
from portal.services.jobs.job_usage import JobUse
from portal.services.jobs.jobs import Jobs
from portal.services.jobs.outputs import JobOutputs
from portal.services.jobs.templates import JobTemplates
from portal.services.launch.checks import LaunchChecks
from portal.services.launch.estimates import Estimates
from portal.services.launch.launcher import Launcher
from portal.services.launch.presets import Presets
from portal.services.launch.registry_logins import RegistryLogins
from portal.services.launch.submissions import Submissions
from portal.services.launch.waiting import WaitingSessions
from portal.services.mail import Mailer
from portal.services.monitoring import Monitoring
from portal.services.notices import MaintenanceFollower, Notices
from portal.services.owner_queue import RunForOwner, SessionQueue, run_now
from portal.services.request_waits import LONG_WAITS
from portal.services.session.adoption import Adoption
from portal.services.session.housekeeping import Housekeeping
from portal.services.session.idle_culler import IdleCuller
from portal.services.session.lifecycle import Lifecycle
from portal.services.session.reconciler import Reconciler
from portal.services.session.recovery import Recovery
from portal.services.session.runner_calls import RunnerCalls
from portal.services.session.session_logs import SessionLogs
from portal.services.session.sessions import Sessions
from portal.services.storage import Storage
from portal.services.systems import Systems
from portal.services.teardown import Teardown
from portal.services.unix_groups import UnixGroups


class Services:
    """The services used by the web layer and the worker, in the order of their dependencies.

    Tests pass fakes of the systems.
    """

    def __init__(
        self,
        settings: Settings,
        systems: Systems,
        run_for_owner: RunForOwner,
        run_launch: RunForOwner = run_now,
        run_start: RunForOwner = run_now,
    ) -> None:
        """Build all services.

        `run_for_owner` runs actions that may have to wait for a user, `run_launch` submissions,
        `run_start` starts of file servers.
        """
        self.settings = settings
        self.clock = systems.clock
        self.catalog = systems.catalog
        self.gpus = settings.gpu.gpus
        self.authenticate = systems.authenticate
        self.snapshot = systems.stores.snapshot
        self._systems = systems
        self._stores = systems.stores
        self._run_for_owner = run_for_owner
        self._long_waits = threading.BoundedSemaphore(LONG_WAITS)
        self._run_launch = run_launch
        self._run_start = run_start
        self._build_administration()
        self._build_cluster()
        self._build_monitoring()
        self._build_files()
        self._build_routes()
        self._build_logins()
        self._build_provider_logins()
        self._build_apps()
        self._build_launch()
        self._build_sessions()
        self._build_jobs()
        self._build_mail()
        self._build_job_submission()
        self._build_session_tasks()
        self._build_other_tasks()

    def _build_administration(self) -> None:
        stores, clock = self._stores, self.clock
        self.administration = Administration(
            stores.administration, stores.status, clock, self.settings.state.journal_days
        )
        self._record = self.administration.record
        self.notices = Notices(stores.notices, self.administration, stores.status, clock)
        self.usage = Usage(
            store=stores.usage,
            status=stores.status,
            administration=self.administration,
            clock=clock,
        )
        self.image_contents = ImageContents(
            self.catalog, self.administration.visible_catalog, self._systems.inventory
        )

    def _build_cluster(self) -> None:
        systems, stores = self._systems, self._stores
        groups = UnixGroups(systems.accounts.identity, self.clock)
        self.cluster = Cluster(stores.status, groups.of, stores.jobs.queued)
        self.cluster_reader = ClusterReader(
            systems.scheduler, stores.status, stores.heartbeats, self.gpus
        )

    def _build_monitoring(self) -> None:
        monitors, stores, state = self._systems.monitors, self._stores, self.settings.state
        self.monitoring = Monitoring(
            heartbeats=stores.heartbeats,
            figures=stores.figures,
            status=stores.status,
            hosts=stores.hosts,
            this_host=state.this_host if state.several_hosts else "",
            routes=self._systems.routes,
            disk=monitors.disk,
            state=Path(state.directory),
            needed_mb=self.settings.monitoring.free_mb,
            expiries=monitors.expiries,
            measures=monitors.measures,
            exposition=monitors.exposition,
            clock=self.clock,
        )

    def change_numbers(self, person: str) -> ChangeNumbers:
        """The counts of changes for a user's name, or for EVERYBODY."""
        return self._stores.changes.numbers(person, self.clock())

    # Files

    def _build_files(self) -> None:
        systems, stores, administration = self._systems, self._stores, self.administration
        self.file_servers = FileServers(
            store=stores.files,
            host=systems.file_servers,
            certificates=systems.certificates,
            routes=systems.routes,
            make_order=systems.file_server_order,
            upload_life=timedelta(hours=self.settings.files.upload_hours),
            clock=self.clock,
            starts=Starts(self._run_start, long_waits=self._long_waits),
        )
        self.files = Files(self.file_servers, self._record)
        self.shares = FolderShares(
            self.files,
            stores.shares,
            systems.accounts,
            self.clock,
            self._record,
            stores.sessions.mounting,
            check_names=self.settings.files.check_names,
        )
        self.storage = Storage(
            systems.files,
            systems.job_settings.own_images,
            self._record,
            self.shares.with_me,
            self.shares.permitted,
            self.settings.sessions.storage,
            lambda person: administration.refused_files(person, self.catalog()),
        )

    # HAProxy's routes, logins and apps

    def _build_routes(self) -> None:
        systems, stores, state = self._systems, self._stores, self.settings.state
        several = state.several_hosts
        self.proxy = ProxyRoutes(
            stores.sessions,
            stores.access,
            systems.routes,
            self.catalog,
            self.file_servers.expected_routes,
            SeveralHosts(stores.hosts, state.this_host) if several else OneHost(stores.access),
        )
        self.host_agent: HostAgent | None = None
        """Runs on each of several portal hosts."""
        if several:
            self.host_agent = HostAgent(
                store=stores.hosts,
                host=state.this_host,
                machine=systems.machine,
                routes=systems.routes,
                proxy=self.proxy,
            )

    def _build_logins(self) -> None:
        systems, stores, settings = self._systems, self._stores, self.settings
        slurm, login = settings.slurm, settings.login
        administrators = Administrators(
            slurm.admins, slurm.admin_groups, systems.accounts, self.clock
        )
        self.logins = Logins(
            store=stores.logins,
            terms=settings.web.login_terms,
            administrators=administrators,
            admin_issuer=settings.oidc.admin_issuer,
            clock=self.clock,
            record=self._record,
            revoke_routes=self.proxy.revoke,
            address=caller_address.get,
        )
        self.login_attempts = LoginAttempts(
            stores.attempts,
            settings.web.login_terms,
            self.clock,
            self._record,
            caller_address,
            systems.monitors.measures,
        )
        self.service_tokens = ServiceTokens(
            stores.service_tokens,
            systems.accounts,
            login.names,
            login.minimum_uid,
            self.clock,
            self._record,
        )

    def _build_provider_logins(self) -> None:
        systems, login, oidc = self._systems, self.settings.login, self.settings.oidc
        self.provider_logins: ProviderLogins | None = None
        """None: the site has no OpenID provider."""
        if systems.identity_provider is None:
            return
        self.provider_logins = ProviderLogins(
            provider=systems.identity_provider,
            terms=ProviderTerms(
                issuer=oidc.issuer,
                rule=oidc.rule,
                minimum_uid=login.minimum_uid,
                reserved=frozenset({login.reader, self.settings.slurm.operator}),
                logout=oidc.logout,
            ),
            accounts=systems.accounts,
            accounts_file=systems.accounts_file,
            attempts=self._stores.attempts,
            logins=self.logins,
            clock=self.clock,
            record=self._record,
            count_refusal=self.login_attempts.write_refusal,
        )

    def _build_apps(self) -> None:
        systems, access, web = self._systems, self._stores.access, self.settings.web
        site_rules = self.administration.site_rules
        self.app_starter = AppStarter(
            access, systems.runners, self.catalog, web.origins.url, self._hub_env
        )
        self.apps = Apps(
            sessions=self._stores.sessions,
            store=access,
            proxy=self.proxy,
            starter=self.app_starter,
            origins=AppOrigins(access, web.origins, site_rules, web.port_rules, self.clock),
            catalog=self.catalog,
            site_rules=site_rules,
            clock=self.clock,
            record=self._record,
            new_event=self.administration.new_event,
        )
        self.gate = AppGate(access, self.proxy, self.catalog, self.clock)
        self.app_reports = AppReports(access, self.proxy, self.catalog, self.logins.may_administer)
        self.ssh = SshAccess(
            self.apps, self._stores.sessions, systems.files, web.ssh_host, self._record
        )

    def _hub_env(self, session: str) -> dict[str, str]:
        """The variables of JupyterHub's server, with the portal's address for its windows."""
        sessions = f"{self.settings.web.public_url.rstrip('/')}/sessions"
        return self._stores.sessions.hub_env(session) | {"SLIPWAY_SESSIONS": sessions}

    # Sessions

    def _build_launch(self) -> None:
        systems, stores = self._systems, self._stores
        self._teardown = Teardown(systems.scheduler, self._run_for_owner, self.apps.close_session)
        self.presets = Presets(stores.presets, self.clock)
        self.registry_logins = RegistryLogins(
            stores.registry_logins, systems.job_settings.own_images, self.clock, self._record
        )
        self.launch_checks = LaunchChecks(
            store=stores.sessions,
            snapshot=stores.snapshot,
            cluster=self.cluster,
            catalog=self.catalog,
            clock=self.clock,
            job_settings=systems.job_settings,
            administration=self.administration,
            gpus=self.gpus,
            hub_base_url=self.settings.hub.base_url,
        )
        self.waiting_sessions = WaitingSessions(stores.sessions, self.clock)
        self.launcher = Launcher(
            store=stores.sessions,
            cluster=self.cluster,
            scheduler=systems.scheduler,
            teardown=self._teardown,
            files=systems.files,
            certificates=systems.certificates,
            catalog=self.catalog,
            clock=self.clock,
            job_settings=systems.job_settings,
            administration=self.administration,
            registry_login=self.registry_logins.for_image,
            may_administer=self.logins.may_administer,
            grant=self.storage.granted,
            measures=systems.monitors.measures,
            launch_begin=self.notices.launch_begin,
            submissions=Submissions(self._run_launch, long_waits=self._long_waits),
            waiting=self.waiting_sessions,
        )
        self.estimates = Estimates(
            systems.scheduler,
            self.cluster,
            self.clock,
            self.launcher.draft,
            self.notices.launch_begin,
        )

    def _build_sessions(self) -> None:
        systems, stores = self._systems, self._stores
        self.sessions = Sessions(
            store=stores.sessions,
            samples=stores.samples,
            teardown=self._teardown,
            administration=self.administration,
            clock=self.clock,
            cluster=self.cluster,
        )
        self.lifecycle = Lifecycle(
            get_session=self.sessions.get,
            store=stores.sessions,
            cluster=self.cluster,
            scheduler=systems.scheduler,
            administration=self.administration,
            clock=self.clock,
            extend_minutes=self.settings.slurm.extend_minutes,
        )
        self.session_logs = SessionLogs(
            self.sessions.get,
            stores.sessions,
            systems.files,
            self._record,
            self.clock,
            self.apps.offered,
        )
        self.runner_calls = RunnerCalls(
            store=stores.sessions,
            samples=stores.samples,
            scheduler=systems.scheduler,
            certificates=systems.certificates,
            resolve=systems.resolve,
            app_reports=self.app_reports,
            app_starter=self.app_starter,
            site_rules=self.administration.site_rules,
            is_watched=stores.logins.is_watched,
            snapshot=stores.snapshot,
            count_change=stores.changes.count,
            usual_seconds=systems.job_settings.heartbeat_seconds,
            clock=self.clock,
            measures=systems.monitors.measures,
        )

    # Jobs

    def _build_jobs(self) -> None:
        systems, stores, batch = self._systems, self._stores, self.settings.batch
        self.jobs = Jobs(
            store=stores.jobs,
            sessions=stores.sessions,
            slurm=systems.slurm_jobs,
            scheduler=systems.scheduler,
            administration=self.administration,
            extender=Extender("job", self.cluster, systems.scheduler, self.clock),
            extend_minutes=self.settings.slurm.extend_minutes,
            clock=self.clock,
        )
        self.job_outputs = JobOutputs(
            self.jobs.get, stores.job_pages, systems.files, self._record, self.clock
        )
        self.job_use = JobUse(
            self.jobs.get,
            stores.job_pages,
            systems.job_meter,
            self.clock,
            retention=timedelta(days=batch.jobs_days),
        )
        self.job_follower = JobFollower(
            store=stores.jobs,
            scheduler=systems.slurm_jobs,
            clock=self.clock,
            history=timedelta(days=batch.history_days),
            retention=timedelta(days=batch.jobs_days),
            listed_tasks=timedelta(days=batch.tasks_days),
        )

    def _build_mail(self) -> None:
        systems, stores = self._systems, self._stores
        self.mailer = Mailer(
            store=stores.mail,
            sessions=stores.sessions,
            jobs=stores.jobs,
            server=systems.mail_server,
            settings=self.settings.mail,
            url=self.settings.web.public_url,
            secret=systems.secret_key,
            clock=self.clock,
        )

    def _build_job_submission(self) -> None:
        systems, stores, batch = self._systems, self._stores, self.settings.batch
        images, sessions = self.settings.images, self.settings.sessions
        self.composer = Composer(
            submitter=systems.submitter,
            store=stores.submissions,
            job_of=self.jobs.get,
            cluster=self.cluster,
            administration=self.administration,
            catalog=self.catalog,
            own_images=images.rules("").sources,
            site_folders=batch.binds,
            grant=self.storage.granted,
            clock=self.clock,
            launch_begin=self.notices.launch_begin,
        )
        self.job_templates = JobTemplates(
            stores.job_templates, self.cluster, self.clock, self._record
        )
        self.batch_settings = BatchSettings(
            site=BatchSite(
                command=batch.command,
                toolkit=sessions.toolkit,
                storage=sessions.storage,
                binds=batch.binds,
                images=images.rules(batch.command),
            ),
            catalog=self.catalog,
            store=stores.administration,
            status=stores.status,
            gpus=self.gpus,
            file=systems.batch_settings_file,
        )

    # Periodic tasks of the worker

    def _build_session_tasks(self) -> None:
        scheduler, store = self._systems.scheduler, self._stores.sessions
        self._session_queue = SessionQueue(self._run_for_owner, store)
        self.reconciler = Reconciler(
            store=store,
            scheduler=scheduler,
            reader=self.cluster_reader,
            recovery=Recovery(
                store=store,
                scheduler=scheduler,
                launcher=self.launcher,
                teardown=self._teardown,
                clock=self.clock,
            ),
            teardown=self._teardown,
            session_queue=self._session_queue,
            note_queue=self.job_follower.note_queue,
            clock=self.clock,
        )
        self.housekeeping = Housekeeping(
            store=store,
            samples=self._stores.samples,
            scheduler=scheduler,
            files=self._systems.files,
            launcher=self.launcher,
            app_starter=self.app_starter,
            session_queue=self._session_queue,
            variables_retention=timedelta(days=self.settings.sessions.variables_days),
            samples_retention=timedelta(days=self.settings.sessions.usage_days),
            clock=self.clock,
        )
        self.idle_culler = IdleCuller(
            store=store,
            status=self._stores.status,
            proxy=self.proxy,
            teardown=self._teardown,
            catalog=self.catalog,
            site_rules=self.administration.site_rules,
            record=self._record,
            clock=self.clock,
        )

    def _build_other_tasks(self) -> None:
        systems, stores = self._systems, self._stores
        self.adoption = Adoption(
            store=stores.sessions,
            jobs=stores.jobs,
            scheduler=systems.scheduler,
            files=systems.files,
            record=self._record,
            run_for_owner=self._run_for_owner,
            callback=systems.job_settings.callback,
            hub_base_url=self.settings.hub.base_url,
            clock=self.clock,
        )
        self.maintenance_follower = MaintenanceFollower(
            store=stores.sessions,
            notices=stores.notices,
            scheduler=systems.scheduler,
            session_queue=self._session_queue,
            clock=self.clock,
        )
        self.account_watch = AccountWatch(
            accounts=systems.accounts,
            logins=self.logins,
            login_store=stores.logins,
            apps=self.apps,
            sessions=stores.sessions,
            clock=self.clock,
            record=self._record,
            checks=self.settings.login.account_checks,
        )
