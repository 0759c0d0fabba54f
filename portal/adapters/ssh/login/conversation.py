"""Logs a person in to the login node with a password and, where sshd asks, a second factor.

All answers are there before sshd is asked (RFC 4256), so no conversation has to be kept between two
requests, which different processes of the portal may get. What sshd prints is shown to nobody.
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
"""In one round."""
_PASSWORD = re.compile(r"password|passwort|mot de passe|contrase", re.IGNORECASE)
_CODE = re.compile(
    r"one[- ]?time|\botp\b|token|\bcode\b|passcode|verification|factor|duo|yubikey", re.IGNORECASE
)


class LateError(Exception):
    """sshd did not decide in time, for example as nobody confirmed the log-in."""


class Answers:
    """Answers the prompts of one log-in: each of password and code at most once."""

    def __init__(self, password: str, code: str, deadline: float) -> None:
        self._left = [PASSWORD, INTERACTIVE]
        self._texts = {PASSWORD: password, INTERACTIVE: code}
        self._deadline = deadline
        self._rounds = 0

    def use_password(self) -> str:
        """The password, for the method of this name."""
        return self._take(PASSWORD)

    def give_back(self) -> None:
        """The password was not taken: sshd has no method of this name."""
        self._left.insert(0, PASSWORD)

    @property
    def has_password(self) -> bool:
        """Whether the password was not sent yet."""
        return PASSWORD in self._left

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
        """By the prompt's words, else in the usual order; "" for a question that is left over."""
        is_code = _CODE.search(prompt) is not None
        if not is_code and _PASSWORD.search(prompt):
            # Asked a second time, the password was wrong: the code is not meant.
            return self._take(PASSWORD)
        if is_code:
            return self._take(INTERACTIVE)
        return self._take(self._left[0]) if self._left else ""

    def _take(self, which: str) -> str:
        if which not in self._left:
            return ""
        self._left.remove(which)
        return self._texts[which]


def converse(
    transport: paramiko.Transport, user: str, password: str, code: str, seconds: float
) -> bool:
    """Log in within `seconds`; False if sshd refuses.

    Raises LateError after that, and paramiko's errors, OSError or EOFError if the connection fails.
    A code is for keyboard-interactive alone, so that is tried first if there is one.
    """
    deadline = time.monotonic() + seconds
    answers = Answers(password, code, deadline)
    method = INTERACTIVE if code else PASSWORD
    tried: list[str] = []
    while len(tried) < MAX_METHODS:
        tried.append(method)
        transport.auth_timeout = max(deadline - time.monotonic(), 0.1)
        try:
            wanted = _try(transport, user, method, answers)
        except paramiko.BadAuthenticationType as error:
            # sshd does not offer this method, so nothing was sent by it.
            wanted = [each for each in error.allowed_types if each not in tried]
        except paramiko.AuthenticationException as error:
            if time.monotonic() >= deadline:
                raise LateError from error
            return False
        else:
            if transport.is_authenticated():
                return True
        if INTERACTIVE in wanted:
            method = INTERACTIVE
        elif PASSWORD in wanted and answers.has_password:
            method = PASSWORD
        else:
            return False
    return False


def _try(transport: paramiko.Transport, user: str, method: str, answers: Answers) -> Sequence[str]:
    """Try one method; returns what sshd wants besides."""
    if method == INTERACTIVE:
        return transport.auth_interactive(user, answers)
    password = answers.use_password()
    try:
        return transport.auth_password(user, password, fallback=False)
    except paramiko.BadAuthenticationType:
        answers.give_back()
        raise
