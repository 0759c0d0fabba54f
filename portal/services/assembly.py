"""Builds all services on top of the given systems: the real ones, or those of the tests."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

from portal.config import Settings
from portal.core.auth.person import Person
from portal.core.launch.site_files import RefusedFile
from portal.services.admin.usage import Usage
from portal.services.app_assembly import AppAssembly
from portal.services.container import Services
from portal.services.launch.estimates import Estimates
from portal.services.launch.launcher import Launcher
from portal.services.launch.outlook import MaintenanceOutlook
from portal.services.launch.presets import Presets
from portal.services.notices.follower import MaintenanceFollower
from portal.services.owner_queue import RunForOwner
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
    return _Assembly(settings, systems, run_for_owner).services()


class _Assembly(AppAssembly):
    """Builds each service once, with its dependencies."""

    def services(self) -> Services:
        """All services."""
        systems = self._systems
        return Services(
            settings=self._settings, clock=self._clock, catalog=self._catalog, gpus=self._gpus,
            snapshot=self._stores.snapshot,
            cluster=self.cluster, launcher=self.launcher, estimates=self.estimates,
            maintenance_outlook=MaintenanceOutlook(self.notices, self._stores.status, self._clock),
            presets=Presets(self._stores.presets, self._clock),
            registry_logins=self.registry_logins, image_contents=self.image_contents,
            composer=self.composer, job_templates=self.job_templates, enlarger=self.enlarger,
            sessions=self.sessions, lifecycle=self.lifecycle, session_logs=self.session_logs,
            session_history=self.session_history, runner_calls=self.runner_calls,
            adoption=self.adoption, jobs=self.jobs, job_outputs=self.job_outputs,
            job_use=self.job_use, apps=self.apps, gate=self.gate, proxy=self.proxy,
            app_starter=self.app_starter, app_control=self.app_control,
            app_reports=self.app_reports, ssh=self.ssh, storage=self.storage,
            file_servers=self.file_servers, files=self.files, shares=self.shares,
            administration=self.administration, notices=self.notices, usage=self.usage,
            batch_settings=self.batch_settings, authenticate=systems.authenticate,
            logins=self.logins, provider_logins=self.provider_logins,
            service_tokens=self.service_tokens, login_attempts=self.login_attempts,
            monitoring=self.monitoring, account_watch=self.account_watch,
            cluster_reader=self.cluster_reader, reconciler=self.reconciler,
            housekeeping=self.housekeeping, idle_culler=self.idle_culler,
            job_follower=self.job_follower, maintenance_follower=self.maintenance_follower,
            host_agent=self.host_agent,
        )  # fmt: skip

    @cached_property
    def usage(self) -> Usage:
        return Usage(
            store=self._stores.usage,
            sessions=self._stores.sessions,
            status=self._stores.status,
            administration=self.administration,
            clock=self._clock,
        )

    @cached_property
    def maintenance_follower(self) -> MaintenanceFollower:
        return MaintenanceFollower(
            store=self._stores.sessions,
            notices=self._stores.notices,
            scheduler=self._systems.scheduler,
            session_queue=self.session_queue,
            clock=self._clock,
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
            snapshot=self._stores.snapshot,
            close_apps=self.apps.close_session,
            registry_login=self.registry_logins.for_image,
            refused_files=self._refused_files,
            grant=self.storage.granted,
            measures=self._systems.monitors.measures,
            launch_begin=self.notices.launch_begin,
        )

    def _refused_files(self, owner: str) -> tuple[RefusedFile, ...]:
        """The site's image files that a session's owner may not start as own images."""
        person = Person(owner, self.logins.may_administer(owner), login="")
        return self.administration.refused_files(person, self._catalog())

    @cached_property
    def estimates(self) -> Estimates:
        return Estimates(
            self._systems.scheduler,
            self.cluster,
            self._clock,
            self.launcher.draft,
            self.notices.launch_begin,
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
            measures=self._systems.monitors.measures,
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
