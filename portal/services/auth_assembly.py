"""Builds the services that tell who a request is from, except logins, and what works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path

from portal.services.admin.administration import caller_address
from portal.services.auth.administrators import Administrators
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.auth.provider_assembly import build_provider_logins
from portal.services.auth.provider_logins import ProviderLogins
from portal.services.auth.service_tokens import ServiceTokens
from portal.services.file_assembly import FileAssembly
from portal.services.monitoring.monitoring import Monitoring


class AuthAssembly(FileAssembly, ABC):
    """Builds each service once; logins are cut with the apps', so assembly.py builds them."""

    @cached_property
    def service_tokens(self) -> ServiceTokens:
        return ServiceTokens(
            self._stores.service_tokens,
            self._systems.accounts,
            self._settings.login.names,
            self._settings.login.minimum_uid,
            self._clock,
            self.administration.record,
        )

    @cached_property
    def administrators(self) -> Administrators:
        slurm = self._settings.slurm
        return Administrators(slurm.admins, slurm.admin_groups, self._systems.accounts, self._clock)

    @cached_property
    def login_attempts(self) -> LoginAttempts:
        terms = self._settings.web.login_terms
        record = self.administration.record
        measures = self._systems.monitors.measures
        return LoginAttempts(
            self._stores.attempts, terms, self._clock, record, caller_address, measures
        )

    @cached_property
    def monitoring(self) -> Monitoring:
        state = self._settings.state
        return Monitoring(
            heartbeats=self._stores.heartbeats,
            figures=self._stores.figures,
            status=self._stores.status,
            hosts=self._stores.hosts,
            this_host=state.this_host if state.several_hosts else "",
            routes=self._systems.routes,
            disk=self._systems.monitors.disk,
            state=Path(state.directory),
            needed_mb=self._settings.monitoring.free_mb,
            expiries=self._systems.monitors.expiries,
            measures=self._systems.monitors.measures,
            exposition=self._systems.monitors.exposition,
            clock=self._clock,
        )

    @property
    @abstractmethod
    def logins(self) -> Logins:
        """Built by assembly.py."""

    @cached_property
    def provider_logins(self) -> ProviderLogins | None:
        return build_provider_logins(
            self._systems, self._settings, self.logins, self.administration, self.login_attempts
        )
