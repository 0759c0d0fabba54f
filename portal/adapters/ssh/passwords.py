"""Passwords of people, checked by the login node."""

from __future__ import annotations

from collections.abc import Callable

import paramiko

from portal.adapters.ssh.connect import open_any
from portal.adapters.ssh.hosts import HostOrder
from portal.config import LoginSettings
from portal.core.auth.accounts import Account
from portal.core.interfaces.systems import Authenticator
from portal.errors import Unavailable


class PasswordCheck(Authenticator):
    """Checks passwords with the login node's sshd, so that its PAM and LDAP apply."""

    def __init__(
        self,
        settings: LoginSettings,
        account: Callable[[str], Account | None],
        hosts: HostOrder | None = None,
    ) -> None:
        self._settings = settings
        self._hosts = hosts or HostOrder(settings.all_hosts, settings.port)
        self._account = account

    def __call__(self, user: str, password: str) -> str:
        if not self._settings.names.permits(user):
            return ""
        try:
            transport, _ = open_any(self._settings, self._hosts)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        try:
            transport.auth_password(user, password)
        except paramiko.AuthenticationException:
            return ""
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        finally:
            transport.close()
        return self._name(user)

    def _name(self, user: str) -> str:
        """The account's name as the login node has it; "" if it is no person's."""
        found = self._account(user)
        if found is None or found.uid < self._settings.minimum_uid:
            return ""
        return found.name if self._settings.names.permits(found.name) else ""
