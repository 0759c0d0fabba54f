"""Logs a person in to the login node with a password and, where sshd asks, a second factor.

All answers are known before sshd prompts (RFC 4256), so no conversation has to be kept between two
HTTP requests, which different processes of the portal may serve. sshd's output is never shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import paramiko

INTERACTIVE, PASSWORD = "keyboard-interactive", "password"
MAX_METHODS = 4
MAX_ROUNDS = 10
MAX_PROMPTS = 8
"""Prompts in one round."""
_PASSWORD = re.compile(r"password|passwort|mot de passe|contrase", re.IGNORECASE)
_CODE = re.compile(
    r"one[- ]?time|\botp\b|token|\bcode\b|passcode|verification|factor|duo|yubikey", re.IGNORECASE
)


class LateError(Exception):
    """sshd did not decide in time, for example because the log-in was not confirmed."""


class Answers:
    """Answers the prompts of one log-in: each of password and code at most once."""

    def __init__(self, password: str, code: str, deadline: float) -> None:
        self._unused = [PASSWORD, INTERACTIVE]
        self._texts = {PASSWORD: password, INTERACTIVE: code}
        self._deadline = deadline
        self._rounds = 0

    def use_password(self) -> str:
        """The password, for the method "password"."""
        return self._take(PASSWORD)

    def give_back(self) -> None:
        """Mark the password as unused: sshd does not offer the method "password"."""
        self._unused.insert(0, PASSWORD)

    @property
    def has_password(self) -> bool:
        """Whether the password has not been sent yet."""
        return PASSWORD in self._unused

    def __call__(
        self, title: str, instructions: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str]:
        """The answers of one round; raises SSHException if there are too many."""
        self._rounds += 1
        if self._rounds > MAX_ROUNDS or len(prompts) > MAX_PROMPTS:
            raise paramiko.SSHException("sshd asks too much")
        if time.monotonic() > self._deadline:
            raise paramiko.SSHException("the log-in takes too long")
        return [self._answer(text) for text, _echo in prompts]

    def _answer(self, prompt: str) -> str:
        """The answer by the prompt's words, else in the usual order; "" once all were used."""
        is_code = _CODE.search(prompt) is not None
        if not is_code and _PASSWORD.search(prompt):
            # A second prompt means that the password was wrong; it does not ask for the code.
            return self._take(PASSWORD)
        if is_code:
            return self._take(INTERACTIVE)
        return self._take(self._unused[0]) if self._unused else ""

    def _take(self, method: str) -> str:
        if method not in self._unused:
            return ""
        self._unused.remove(method)
        return self._texts[method]


def converse(
    transport: paramiko.Transport, user: str, password: str, code: str, seconds: float
) -> bool:
    """Log in within `seconds`; False if sshd refuses.

    Raises LateError after that, and paramiko's errors, OSError or EOFError if the connection fails.
    Only keyboard-interactive takes a code, so it is tried first if there is one.
    """
    deadline = time.monotonic() + seconds
    answers = Answers(password, code, deadline)
    method = INTERACTIVE if code else PASSWORD
    tried: list[str] = []
    while len(tried) < MAX_METHODS:
        tried.append(method)
        transport.auth_timeout = max(deadline - time.monotonic(), 0.1)
        try:
            methods = _try(transport, user, method, answers)
        except paramiko.BadAuthenticationType as error:
            # sshd does not offer this method, so nothing was sent by it.
            methods = [name for name in error.allowed_types if name not in tried]
        except paramiko.AuthenticationException as error:
            if time.monotonic() >= deadline:
                raise LateError from error
            return False
        else:
            if transport.is_authenticated():
                return True
        if INTERACTIVE in methods:
            method = INTERACTIVE
        elif PASSWORD in methods and answers.has_password:
            method = PASSWORD
        else:
            return False
    return False


def _try(transport: paramiko.Transport, user: str, method: str, answers: Answers) -> Sequence[str]:
    """Try one method; returns the methods that sshd requires in addition."""
    if method == INTERACTIVE:
        return transport.auth_interactive(user, answers)
    password = answers.use_password()
    try:
        return transport.auth_password(user, password, fallback=False)
    except paramiko.BadAuthenticationType:
        answers.give_back()
        raise
