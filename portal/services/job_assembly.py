"""Builds the services of batch jobs, and those on which both they and sessions are built."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

from portal.config import Settings
from portal.core.admin.batch_settings import BatchSite
from portal.services.admin.administration import Administration
from portal.services.admin.batch_settings import BatchSettings
from portal.services.cluster import Cluster, ClusterReader
from portal.services.extending import Extender
from portal.services.images.contents import ImageContents
from portal.services.jobs.follower import JobFollower
from portal.services.jobs.jobs import Jobs
from portal.services.jobs.outputs import JobOutputs
from portal.services.jobs.templates import JobTemplates
from portal.services.jobs.usage import JobUse
from portal.services.launch.checks import LaunchChecks
from portal.services.launch.enlarge import Enlarger
from portal.services.launch.registry_logins import RegistryLogins
from portal.services.notices.notices import Notices
from portal.services.owner_queue import RunForOwner
from portal.services.session.adoption import Adoption
from portal.services.systems import Systems
from portal.services.unix_groups import UnixGroups


class JobAssembly:
    """Builds each service once, with its dependencies; assembly.py adds the others."""

    def __init__(self, settings: Settings, systems: Systems, run_for_owner: RunForOwner) -> None:
        self._settings = settings
        self._systems = systems
        self._stores = systems.stores
        self._clock = systems.clock
        self._catalog = systems.catalog
        self._gpus = settings.gpu.gpus
        self._run_for_owner = run_for_owner

    @cached_property
    def administration(self) -> Administration:
        days = self._settings.state.journal_days
        return Administration(self._stores.administration, self._stores.status, self._clock, days)

    @cached_property
    def notices(self) -> Notices:
        return Notices(self._stores.notices, self.administration, self._clock)

    @cached_property
    def cluster(self) -> Cluster:
        groups = UnixGroups(self._systems.accounts.identity, self._clock)
        return Cluster(self._stores.status, groups.of, self._stores.jobs.queued)

    @cached_property
    def cluster_reader(self) -> ClusterReader:
        stores = self._stores
        return ClusterReader(self._systems.scheduler, stores.status, stores.heartbeats, self._gpus)

    @cached_property
    def launch_checks(self) -> LaunchChecks:
        return LaunchChecks(
            cluster=self.cluster,
            catalog=self._catalog,
            clock=self._clock,
            job_settings=self._systems.job_settings,
            administration=self.administration,
            gpus=self._gpus,
            hub_base_url=self._settings.hub.base_url,
        )

    @cached_property
    def enlarger(self) -> Enlarger:
        return Enlarger(self.cluster)

    @cached_property
    def image_contents(self) -> ImageContents:
        visible = self.administration.visible_catalog
        return ImageContents(self._catalog, visible, self._systems.inventory)

    @cached_property
    def registry_logins(self) -> RegistryLogins:
        rules, record = self._systems.job_settings.own_images, self.administration.record
        return RegistryLogins(self._stores.registry_logins, rules, self._clock, record)

    @cached_property
    def batch_settings(self) -> BatchSettings:
        sessions, batch = self._settings.sessions, self._settings.batch
        return BatchSettings(
            site=BatchSite(
                command=batch.command,
                toolkit=sessions.toolkit,
                storage=sessions.storage,
                binds=batch.binds,
                images=self._settings.images.rules(batch.command),
            ),
            catalog=self._catalog,
            store=self._stores.administration,
            status=self._stores.status,
            gpus=self._gpus,
            file=self._systems.batch_settings_file,
        )

    @cached_property
    def jobs(self) -> Jobs:
        scheduler = self._systems.scheduler
        return Jobs(
            store=self._stores.jobs,
            slurm=self._systems.slurm_jobs,
            scheduler=scheduler,
            administration=self.administration,
            extender=Extender("job", self.cluster, scheduler, self._clock),
            extend_minutes=self._settings.slurm.extend_minutes,
            clock=self._clock,
        )

    @cached_property
    def job_outputs(self) -> JobOutputs:
        return JobOutputs(
            self.jobs.get,
            self._stores.job_pages,
            self._systems.files,
            self.administration.record,
            self._clock,
        )

    @cached_property
    def job_use(self) -> JobUse:
        return JobUse(
            self.jobs.get,
            self._stores.job_pages,
            self._systems.job_meter,
            self._clock,
            kept=timedelta(days=self._settings.batch.jobs_days),
        )

    @cached_property
    def job_follower(self) -> JobFollower:
        return JobFollower(
            store=self._stores.jobs,
            scheduler=self._systems.slurm_jobs,
            clock=self._clock,
            history=timedelta(days=self._settings.batch.history_days),
            kept=timedelta(days=self._settings.batch.jobs_days),
        )

    @cached_property
    def job_templates(self) -> JobTemplates:
        record = self.administration.record
        return JobTemplates(self._stores.job_templates, self.cluster, self._clock, record)

    @cached_property
    def adoption(self) -> Adoption:
        return Adoption(
            store=self._stores.sessions,
            jobs=self._stores.jobs,
            scheduler=self._systems.scheduler,
            files=self._systems.files,
            record=self.administration.record,
            run_for_owner=self._run_for_owner,
            callback=self._systems.job_settings.callback,
            hub_base_url=self._settings.hub.base_url,
            clock=self._clock,
        )
