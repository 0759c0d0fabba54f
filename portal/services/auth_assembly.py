"""Builds the services that tell who a request is from and whether it may try, except logins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from portal.services.admin.administration import caller_address
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.auth.provider_assembly import build_provider_logins
from portal.services.auth.provider_logins import ProviderLogins
from portal.services.auth.service_tokens import ServiceTokens
from portal.services.file_assembly import FileAssembly


class AuthAssembly(FileAssembly, ABC):
    """Builds each service once; logins are cut with the apps', so assembly.py builds them."""

    @cached_property
    def service_tokens(self) -> ServiceTokens:
        return ServiceTokens(
            self._stores.service_tokens,
            self._systems.accounts,
            self._settings.login.min_uid,
            self._clock,
            self.administration.record,
        )

    @cached_property
    def login_attempts(self) -> LoginAttempts:
        terms = self._settings.web.login_terms
        record = self.administration.record
        return LoginAttempts(self._stores.attempts, terms, self._clock, record, caller_address)

    @property
    @abstractmethod
    def logins(self) -> Logins:
        """Built by assembly.py."""

    @cached_property
    def provider_logins(self) -> ProviderLogins | None:
        return build_provider_logins(
            self._systems, self._settings, self.logins, self.administration, self.login_attempts
        )
