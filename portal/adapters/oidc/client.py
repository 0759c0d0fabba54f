"""One question to the provider: bounded in time and size, answered by a JSON object."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import requests
from requests.auth import AuthBase
from urllib3 import Timeout
from urllib3.exceptions import HTTPError

from portal.adapters.oidc.deadline import DeadlineAdapter
from portal.node.common.json_text import decode_object

CONNECT_SECONDS = 4.0
MAX_ANSWER = 1 << 20
"""Bytes of an answer's body."""
SLOW_SECONDS = 1.0
SILENT_SECONDS = 10.0
"""How long an address whose silence took longer than that is not asked again.

What fails at once costs nobody a wait, and strangers may cause it: a firewall may close connections
because of what they sent.
"""
_MOST_ADDRESSES = 16


class AnswerError(Exception):
    """There is no answer, or not one that can be read; the text says why, for the log."""


@dataclass(frozen=True)
class Answer:
    """The status, and the JSON object of the body."""

    status: int
    content: dict[str, Any]


class BearerAuth(AuthBase):
    """An access token (RFC 6750)."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class NoAuth(AuthBase):
    """No credentials: without it, requests takes them from a .netrc file."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class _Session(requests.Session):
    """Follows no redirect: for one that it does not follow, requests reads all of its body."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("https://", "http://"):
            self.mount(scheme, DeadlineAdapter())

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class ProviderClient:
    """Asks the provider's addresses; those that did not answer are left alone for some seconds."""

    def __init__(self, ca_file: str) -> None:
        """`ca_file`: PEM file of the certificate's authority; "" for the usual ones."""
        self._verify = ca_file or True
        self._silent: dict[str, float] = {}
        """Until when an address is not asked."""

    def ask(
        self,
        method: str,
        url: str,
        seconds: float,
        *,
        auth: AuthBase | None = None,
        data: dict[str, str] | None = None,
    ) -> Answer:
        """The answer, complete after `seconds`; raises AnswerError. Follows no redirect."""
        if self._silent.get(url, 0.0) > time.monotonic():
            raise AnswerError(f"it did not answer less than {SILENT_SECONDS:.0f} s ago")
        begun = time.monotonic()
        try:
            status, body = self._exchange(method, url, seconds, auth or NoAuth(), data)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            if time.monotonic() - begun > SLOW_SECONDS:
                self._note_silence(url)
            raise AnswerError(str(error)) from error
        if len(body) > MAX_ANSWER:
            raise AnswerError(f"more than {MAX_ANSWER} bytes")
        try:
            return Answer(status, decode_object(body))
        except ValueError as error:
            raise AnswerError(f"status {status}, and its answer {error}") from error

    def _exchange(
        self, method: str, url: str, seconds: float, auth: AuthBase, data: dict[str, str] | None
    ) -> tuple[int, bytes]:
        timeout: Any = Timeout(total=max(seconds, 0.001), connect=CONNECT_SECONDS)
        # Compressed answers could be a thousand times larger than what is read.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        with (
            _Session() as session,
            session.request(
                method,
                url,
                auth=auth,
                data=data,
                headers=headers,
                timeout=timeout,
                verify=self._verify,
                stream=True,
            ) as answer,
        ):
            return answer.status_code, answer.raw.read(MAX_ANSWER + 1, decode_content=False)

    def _note_silence(self, url: str) -> None:
        if len(self._silent) >= _MOST_ADDRESSES:
            self._silent.clear()
        self._silent[url] = time.monotonic() + SILENT_SECONDS
