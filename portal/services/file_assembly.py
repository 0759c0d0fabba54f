"""Builds the services of users' files and folders."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

from portal.services.files.files import Files
from portal.services.files.servers import FileServers
from portal.services.files.shares import FolderShares
from portal.services.job_assembly import JobAssembly
from portal.services.jobs.composer import Composer
from portal.services.storage import Storage


class FileAssembly(JobAssembly):
    """Builds each service once."""

    @cached_property
    def storage(self) -> Storage:
        rules, record = self._systems.job_settings.own_images, self.administration.record
        return Storage(
            self._systems.files,
            rules,
            record,
            self.shares.with_me,
            self._settings.sessions.storage,
            lambda person: self.administration.refused_files(person, self._catalog()),
        )

    @cached_property
    def composer(self) -> Composer:
        return Composer(
            submitter=self._systems.submitter,
            store=self._stores.submissions,
            job_of=self.jobs.get,
            cluster=self.cluster,
            administration=self.administration,
            catalog=self._catalog,
            own_images=self._settings.images.rules("").sources,
            site_folders=self._settings.batch.binds,
            grant=self.storage.granted,
            clock=self._clock,
            launch_begin=self.notices.launch_begin,
        )

    @cached_property
    def file_servers(self) -> FileServers:
        systems = self._systems
        return FileServers(
            store=self._stores.files,
            host=systems.file_servers,
            certificates=systems.certificates,
            routes=systems.routes,
            make_order=systems.file_server_order,
            upload_life=timedelta(hours=self._settings.files.upload_hours),
            clock=self._clock,
        )

    @cached_property
    def files(self) -> Files:
        return Files(self.file_servers, self.administration.record)

    @cached_property
    def shares(self) -> FolderShares:
        return FolderShares(
            self.files,
            self._stores.shares,
            self._systems.accounts,
            self._clock,
            self.administration.record,
        )
