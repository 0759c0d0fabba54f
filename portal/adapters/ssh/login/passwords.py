"""Users' passwords, checked by the login node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import paramiko

from portal.adapters.ssh.connect import open_any
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.login.conversation import LateError, converse
from portal.adapters.ssh.per_user import ThreadBudget
from portal.config import LoginSettings
from portal.core.auth.accounts import Account
from portal.core.interfaces.systems import Authenticator
from portal.errors import PasswordNotTried, Unavailable

LATE = "The log-in was not confirmed in time. Try again."


class PasswordCheck(Authenticator):
    """Checks passwords with the login node's sshd, so that its PAM and LDAP apply."""

    def __init__(
        self,
        settings: LoginSettings,
        account: Callable[[str], Account | None],
        hosts: HostOrder | None = None,
        budget: ThreadBudget | None = None,
        at_once: int = 1,
    ) -> None:
        """At most `at_once` passwords are checked at a time; PasswordNotTried beyond."""
        self._settings = settings
        self._hosts = hosts or HostOrder(settings.all_hosts, settings.port)
        self._account = account
        self._budget = budget
        self._free = threading.BoundedSemaphore(at_once)

    def __call__(self, user: str, password: str, code: str = "") -> str:
        if not self._settings.names.permits(user):
            return ""
        with self._thread():
            accepted = self._ask(user, password, code)
        return self._name(user) if accepted else ""

    @contextmanager
    def _thread(self) -> Iterator[None]:
        """Hold a thread of the process; raises PasswordNotTried."""
        if not self._free.acquire(blocking=False):
            raise PasswordNotTried
        with ExitStack() as stack:
            stack.callback(self._free.release)
            if self._budget:
                try:
                    # No user name: an attempt to log in proves no identity.
                    stack.enter_context(self._budget.thread(""))
                except Unavailable:
                    raise PasswordNotTried from None
            yield

    def _ask(self, user: str, password: str, code: str) -> bool:
        try:
            transport, _ = open_any(self._settings, self._hosts)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        try:
            return converse(transport, user, password, code, self._settings.login_seconds)
        except LateError as error:
            raise Unavailable(LATE) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        finally:
            transport.close()

    def _name(self, user: str) -> str:
        """The account's name as the login node spells it; "" for a system account."""
        account = self._account(user)
        if account is None or account.uid < self._settings.minimum_uid:
            return ""
        return account.name if self._settings.names.permits(account.name) else ""
