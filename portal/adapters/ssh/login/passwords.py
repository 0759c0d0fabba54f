"""Users' passwords, checked by the login node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import paramiko

from portal.adapters.ssh.connect import open_any
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.login.conversation import LateError, converse
from portal.adapters.ssh.per_user import ThreadBudget
from portal.config import LoginSettings
from portal.core.auth.accounts import Account
from portal.core.interfaces.systems import Authenticator
from portal.errors import Unavailable

WAIT_SECONDS = 10.0
"""Seconds that a log-in waits for others: HAProxy may pass more of them to one process than to
another."""
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
        waiting: int = 0,
    ) -> None:
        """At most `at_once` log-ins of a process run, and `waiting` more wait for them."""
        self._settings = settings
        self._hosts = hosts or HostOrder(settings.all_hosts, settings.port)
        self._account = account
        self._budget = budget
        self._admitted = threading.BoundedSemaphore(at_once + waiting)
        self._running = threading.BoundedSemaphore(at_once)

    def __call__(self, user: str, password: str, code: str = "") -> str:
        if not self._settings.names.permits(user):
            return ""
        with (
            _slot(self._admitted, 0.0),
            _slot(self._running, WAIT_SECONDS),
            # No user name: an attempt to log in proves no identity.
            self._budget.thread("") if self._budget else nullcontext(),
        ):
            accepted = self._ask(user, password, code)
        return self._name(user) if accepted else ""

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


@contextmanager
def _slot(bound: threading.BoundedSemaphore, seconds: float) -> Iterator[None]:
    if not bound.acquire(timeout=seconds):
        raise Unavailable("Too many people log in at once. Try again in a few seconds.")
    try:
        yield
    finally:
        bound.release()
