"""HTTP requests to the provider, bounded in time and size, with JSON objects as responses."""

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
MAX_RESPONSE = 1 << 20
"""Bytes of a response's body."""
SLOW_SECONDS = 1.0
SILENT_SECONDS = 10.0
"""How long an address is not requested again after it failed for more than SLOW_SECONDS.

An immediate failure delays no request, and strangers may cause it: a firewall may close
connections because of their input.
"""
_MOST_ADDRESSES = 16


class ResponseError(Exception):
    """There is no valid response; the text gives the reason for the log."""


@dataclass(frozen=True)
class Response:
    """A response: its status and the JSON object of its body."""

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
    """Ignores redirects: requests would read the whole body of one that it does not follow."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("https://", "http://"):
            self.mount(scheme, DeadlineAdapter())

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class ProviderClient:
    """Sends requests to the provider; skips addresses that did not answer for some seconds."""

    def __init__(self, ca_file: str) -> None:
        """`ca_file`: PEM file of the certificate's authority; "" for the default ones."""
        self._verify = ca_file or True
        self._silent: dict[str, float] = {}
        """Time until which an address is skipped."""

    def ask(
        self,
        method: str,
        url: str,
        seconds: float,
        *,
        auth: AuthBase | None = None,
        data: dict[str, str] | None = None,
    ) -> Response:
        """The response, complete within `seconds`; raises ResponseError. Follows no redirect."""
        if self._silent.get(url, 0.0) > time.monotonic():
            raise ResponseError(f"it did not answer less than {SILENT_SECONDS:.0f} s ago")
        start = time.monotonic()
        try:
            status, body = self._exchange(method, url, seconds, auth or NoAuth(), data)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            if time.monotonic() - start > SLOW_SECONDS:
                self._note_silence(url)
            raise ResponseError(str(error)) from error
        if len(body) > MAX_RESPONSE:
            raise ResponseError(f"more than {MAX_RESPONSE} bytes")
        try:
            return Response(status, decode_object(body))
        except ValueError as error:
            raise ResponseError(f"status {status}, and its answer {error}") from error

    def _exchange(
        self, method: str, url: str, seconds: float, auth: AuthBase, data: dict[str, str] | None
    ) -> tuple[int, bytes]:
        timeout: Any = Timeout(total=max(seconds, 0.001), connect=CONNECT_SECONDS)
        # A compressed response could expand a thousandfold.
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
            ) as response,
        ):
            return response.status_code, response.raw.read(MAX_RESPONSE + 1, decode_content=False)

    def _note_silence(self, url: str) -> None:
        if len(self._silent) >= _MOST_ADDRESSES:
            self._silent.clear()
        self._silent[url] = time.monotonic() + SILENT_SECONDS
