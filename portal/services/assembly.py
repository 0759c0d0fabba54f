"""Builds all services on top of the given systems: the real ones, or those of the tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property

from portal.config import Settings
from portal.services.admin.administration import caller_address
from portal.services.apps.apps import Apps
from portal.services.apps.control import AppControl
from portal.services.apps.gate import AppGate
from portal.services.apps.host_agent import agent_of, hosts_of
from portal.services.apps.origins import AppOrigins
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.logins import Logins
from portal.services.auth_assembly import AuthAssembly
from portal.services.cluster import ClusterReader
from portal.services.container import Services
from portal.services.job_control import JobControl
from portal.services.launch.estimates import Estimates
from portal.services.launch.launcher import Launcher
from portal.services.launch.presets import Presets
from portal.services.owner_queue import RunForOwner, SessionQueue
from portal.services.session.housekeeping import Housekeeping
from portal.services.session.idle_culler import IdleCuller
from portal.services.session.lifecycle import Lifecycle
from portal.services.session.reconciler import Reconciler
from portal.services.session.recovery import Recovery
from portal.services.session.runner_calls import RunnerCalls
from portal.services.session.session_history import SessionHistory
from portal.services.session.session_logs import SessionLogs
from portal.services.session.sessions import Sessions
from portal.services.systems import Systems


def assemble(settings: Settings, systems: Systems, run_for_owner: RunForOwner) -> Services:
    """Build all services; `run_for_owner` runs actions that may have to wait for a user."""
    assembly = _Assembly(settings, systems, run_for_owner)
    services = assembly.services()
    return replace(services, host_agent=agent_of(settings.state, systems, services.proxy))


class _Assembly(AuthAssembly):
    """Builds each service once, with its dependencies."""

    def services(self) -> Services:
        """All services."""
        return Services(
            settings=self._settings,
            clock=self._clock,
            catalog=self._catalog,
            gpus=self._gpus,
            cluster=self.cluster,
            launcher=self.launcher,
            estimates=Estimates(
                self._systems.scheduler, self.cluster, self._clock, self.launcher.draft
            ),
            presets=Presets(self._stores.presets, self._clock),
            registry_logins=self.registry_logins,
            image_contents=self.image_contents,
            composer=self.composer,
            job_templates=self.job_templates,
            enlarger=self.enlarger,
            sessions=self.sessions,
            lifecycle=self.lifecycle,
            session_logs=self.session_logs,
            session_history=self.session_history,
            runner_calls=self.runner_calls,
            jobs=self.jobs,
            job_outputs=self.job_outputs,
            job_use=self.job_use,
            apps=self.apps,
            gate=self.gate,
            proxy=self.proxy,
            app_starter=self.app_starter,
            app_control=self.app_control,
            app_reports=self.app_reports,
            ssh=self.ssh,
            storage=self.storage,
            file_servers=self.file_servers,
            files=self.files,
            shares=self.shares,
            administration=self.administration,
            batch_settings=self.batch_settings,
            authenticate=self._systems.authenticate,
            logins=self.logins,
            service_tokens=self.service_tokens,
            login_attempts=self.login_attempts,
            account_watch=self.account_watch,
            cluster_reader=self.cluster_reader,
            reconciler=self.reconciler,
            housekeeping=self.housekeeping,
            idle_culler=self.idle_culler,
            job_follower=self.job_follower,
        )

    @cached_property
    def cluster_reader(self) -> ClusterReader:
        return ClusterReader(self._systems.scheduler, self._stores.status, self._gpus)

    @cached_property
    def job_control(self) -> JobControl:
        return JobControl(self._systems.scheduler, self._run_for_owner)

    @cached_property
    def session_queue(self) -> SessionQueue:
        return SessionQueue(self._run_for_owner, self._stores.sessions)

    # Apps

    @cached_property
    def proxy(self) -> ProxyRoutes:
        stores = self._stores
        files, hosts = self.file_servers.expected_routes, hosts_of(self._settings.state, stores)
        return ProxyRoutes(
            stores.sessions, stores.access, self._systems.routes, self._catalog, files, hosts
        )

    @cached_property
    def app_starter(self) -> AppStarter:
        origin, runners = self._settings.web.origins.url, self._systems.runners
        return AppStarter(self._stores.access, runners, self._catalog, origin, self._hub_env)

    def _hub_env(self, session: str) -> dict[str, str]:
        """The variables of JupyterHub's server, with the portal's address for its windows."""
        sessions = f"{self._settings.web.public_url.rstrip('/')}/sessions"
        return self._stores.sessions.hub_env(session) | {"SLIPWAY_SESSIONS": sessions}

    @cached_property
    def apps(self) -> Apps:
        web = self._settings.web
        return Apps(
            sessions=self._stores.sessions,
            store=self._stores.access,
            proxy=self.proxy,
            starter=self.app_starter,
            origins=AppOrigins(
                self._stores.access,
                web.origins,
                self.administration.site_rules,
                web.port_rules,
                self._clock,
            ),
            catalog=self._catalog,
            site_rules=self.administration.site_rules,
            clock=self._clock,
            record=self.administration.record,
            new_event=self.administration.new_event,
        )

    @cached_property
    def app_control(self) -> AppControl:
        return AppControl(
            self.apps,
            self._stores.access,
            self.app_starter,
            self.proxy,
            self._catalog,
            self.administration.record,
        )

    @cached_property
    def gate(self) -> AppGate:
        return AppGate(self._stores.access, self.proxy, self._catalog, self._clock)

    @cached_property
    def app_reports(self) -> AppReports:
        is_admin = self._settings.slurm.admins.__contains__
        return AppReports(self._stores.access, self.proxy, self._catalog, is_admin)

    @cached_property
    def ssh(self) -> SshAccess:
        return SshAccess(
            self.apps,
            self._stores.sessions,
            self._systems.files,
            self._settings.web.ssh_host,
            self.administration.record,
        )

    # Launch

    @cached_property
    def launcher(self) -> Launcher:
        return Launcher(
            store=self._stores.sessions,
            cluster=self.cluster,
            scheduler=self._systems.scheduler,
            job_control=self.job_control,
            files=self._systems.files,
            certificates=self._systems.certificates,
            catalog=self._catalog,
            clock=self._clock,
            job_settings=self._systems.job_settings,
            administration=self.administration,
            checks=self.launch_checks,
            close_apps=self.apps.close_session,
            registry_login=self.registry_logins.for_image,
            grant=self.storage.granted,
        )

    # Sessions

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(
            store=self._stores.sessions,
            job_control=self.job_control,
            administration=self.administration,
            close_apps=self.apps.close_session,
            clock=self._clock,
            cluster=self.cluster,
        )

    @cached_property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(
            get_session=self.sessions.get,
            store=self._stores.sessions,
            cluster=self.cluster,
            scheduler=self._systems.scheduler,
            administration=self.administration,
            clock=self._clock,
            extend_minutes=self._settings.slurm.extend_minutes,
        )

    @cached_property
    def session_logs(self) -> SessionLogs:
        return SessionLogs(
            self.sessions.get,
            self._stores.sessions,
            self._systems.files,
            self.administration.record,
            self._clock,
            self.apps.offered,
        )

    @cached_property
    def session_history(self) -> SessionHistory:
        return SessionHistory(self.sessions.get, self._stores.samples, self.administration)

    @cached_property
    def runner_calls(self) -> RunnerCalls:
        return RunnerCalls(
            store=self._stores.sessions,
            samples=self._stores.samples,
            scheduler=self._systems.scheduler,
            certificates=self._systems.certificates,
            resolve=self._systems.resolve,
            app_reports=self.app_reports,
            app_starter=self.app_starter,
            site_rules=self.administration.site_rules,
            clock=self._clock,
        )

    # Used by the worker

    @cached_property
    def recovery(self) -> Recovery:
        return Recovery(
            store=self._stores.sessions,
            scheduler=self._systems.scheduler,
            launcher=self.launcher,
            job_control=self.job_control,
            close_apps=self.apps.close_session,
            clock=self._clock,
        )

    @cached_property
    def reconciler(self) -> Reconciler:
        return Reconciler(
            store=self._stores.sessions,
            scheduler=self._systems.scheduler,
            reader=self.cluster_reader,
            recovery=self.recovery,
            job_control=self.job_control,
            close_apps=self.apps.close_session,
            session_queue=self.session_queue,
            note_queue=self.job_follower.note_queue,
            clock=self._clock,
        )

    @cached_property
    def housekeeping(self) -> Housekeeping:
        return Housekeeping(
            store=self._stores.sessions,
            samples=self._stores.samples,
            scheduler=self._systems.scheduler,
            files=self._systems.files,
            launcher=self.launcher,
            app_starter=self.app_starter,
            session_queue=self.session_queue,
            variables_kept=timedelta(days=self._settings.sessions.variables_days),
            samples_kept=timedelta(days=self._settings.sessions.usage_days),
            clock=self._clock,
        )

    @cached_property
    def idle_culler(self) -> IdleCuller:
        return IdleCuller(
            store=self._stores.sessions,
            status=self._stores.status,
            proxy=self.proxy,
            job_control=self.job_control,
            close_apps=self.apps.close_session,
            catalog=self._catalog,
            site_rules=self.administration.site_rules,
            record=self.administration.record,
            clock=self._clock,
        )

    # Logins

    @cached_property
    def logins(self) -> Logins:
        return Logins(
            store=self._stores.logins,
            terms=self._settings.web.login_terms,
            admins=self._settings.slurm.admins,
            clock=self._clock,
            record=self.administration.record,
            revoke_routes=self.proxy.revoke,
            address=caller_address.get,
        )

    @cached_property
    def account_watch(self) -> AccountWatch:
        return AccountWatch(
            accounts=self._systems.accounts,
            logins=self.logins,
            login_store=self._stores.logins,
            apps=self.apps,
            sessions=self._stores.sessions,
            clock=self._clock,
            record=self.administration.record,
            checks=self._settings.login.account_checks,
        )
