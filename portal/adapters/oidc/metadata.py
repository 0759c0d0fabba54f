"""The provider's published documents: its metadata (discovery) and its keys."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from joserfc.jwk import KeySet

from portal.adapters.oidc.answers import Discovery, InvalidResponseError, PublishedKeys, read
from portal.adapters.oidc.client import SILENT_SECONDS, ProviderClient, Response, ResponseError
from portal.adapters.oidc.turns import Busy, Turns, seconds_left
from portal.adapters.ssh.per_user import ThreadBudget
from portal.config import OidcSettings
from portal.errors import Unavailable, clip, visible

log = logging.getLogger(__name__)

CACHE_SECONDS = 3600.0
RETRY_SECONDS = 10.0
"""Minimum time between two requests for keys because of a token with an unknown key."""
PATIENCE = 1.0
"""Seconds that a thread waits for another thread's request while the cache is empty."""
_KEY_TYPES = ("RSA", "EC", "OKP")
"""Types of public keys: a symmetric key, if a provider published one, verifies nothing."""

T = TypeVar("T")


class Document(Generic[T]):
    """A document of the provider, cached for an hour, and longer during an outage.

    Any visitor can trigger a request, and the provider may answer or fail slowly: one thread sends
    the request while the others use the cached document. After a failure there is no request for
    ten seconds.
    """

    def __init__(
        self,
        fetch: Callable[[], T],
        turns: Turns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._turns = turns
        self._monotonic = monotonic
        self._lock = threading.Lock()
        """Never held during a request."""
        self._cached: T | None = None
        self._since = 0.0
        self._failure, self._silent_until = "", 0.0
        self._request_done: threading.Event | None = None
        """Set when the request in progress has ended; None without a request."""

    def get(self, older_than: float = CACHE_SECONDS) -> T:
        """The document, fetched again if it is older than this; raises Unavailable."""
        with self._lock:
            now = self._monotonic()
            silent = now < self._silent_until
            if self._cached is not None and (silent or now - self._since < older_than):
                return self._cached
            if silent:
                raise Unavailable(self._failure)
            in_progress = self._request_done
            if in_progress is None:
                self._request_done = threading.Event()
        try:
            if in_progress is None:
                self._turns.run(self._ask)
            elif self._cached is None:
                self._turns.run(partial(in_progress.wait, PATIENCE))
        except Unavailable as error:
            if in_progress is None and isinstance(error, Busy):
                self._end()  # no request was sent
            if self._cached is None:
                raise
        if self._cached is None:
            raise self._turns.late()
        return self._cached

    def _ask(self) -> None:
        try:
            self._cached, self._since = self._fetch(), self._monotonic()
        except Unavailable as error:
            self._failure = error.text
            self._silent_until = self._monotonic() + SILENT_SECONDS
            if self._cached is None:
                raise
            log.warning("the provider does not answer: its last metadata and keys still count")
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            if self._request_done is not None:
                self._request_done.set()
            self._request_done = None


class Metadata:
    """The provider's metadata and keys."""

    def __init__(self, settings: OidcSettings, budget: ThreadBudget | None = None) -> None:
        """`budget`: the process's threads, of which a few may wait for the provider."""
        self._settings = settings
        self._client = ProviderClient(settings.ca_file)
        self.turns = Turns(settings.title, budget)
        self._discovered = Document(self._discover, self.turns)
        self._published = Document(self._fetch_keys, self.turns)

    def get(self) -> Discovery:
        """The metadata; raises Unavailable."""
        return self._discovered.get()

    def endpoint(self, name: str) -> str:
        """An endpoint's URL; raises Unavailable if it is missing or not https."""
        url = self.optional_endpoint(name)
        if not url:
            raise self.failure(f"its metadata has no valid {name}")
        return url

    def optional_endpoint(self, name: str) -> str:
        """An endpoint's URL; "" if it is missing or not https."""
        url: str = getattr(self.get(), name)
        try:
            parts, issuer = urlsplit(url), urlsplit(self._settings.issuer)
        except ValueError:  # such as an opening bracket in the host
            return ""
        allowed = parts.scheme == "https" or (parts.scheme, issuer.scheme) == ("http", "http")
        plain = url.isascii() and " " not in url and not parts.fragment
        return url if allowed and plain and parts.hostname else ""

    def keys(self, refresh: bool = False) -> KeySet:
        """The provider's signing keys; `refresh`: fetch them again, as a token's key is unknown."""
        keys = self._published.get(RETRY_SECONDS if refresh else CACHE_SECONDS)
        return KeySet.import_key_set({"keys": keys})

    def ask(self, method: str, url: str, **options: Any) -> Response:
        """The provider's JSON response, within the remaining time; raises Unavailable."""
        try:
            return self._client.ask(method, url, seconds_left(), **options)
        except ResponseError as error:
            raise self.failure(f"{url}: {error}") from error

    def get_object(self, url: str, **options: Any) -> dict[str, Any]:
        """The JSON object of a successful response; raises Unavailable."""
        response = self.ask("GET", url, **options)
        if response.status != 200:
            raise self.failure(f"{url}: status {response.status}")
        return response.content

    def failure(self, reason: str) -> Unavailable:
        """The error for users; the cause is written to the log."""
        log.error("OpenID provider %s: %s", self._settings.issuer, clip(visible(reason), 500))
        return Unavailable(
            f"{self._settings.title} does not answer as it should. Try again in a moment."
        )

    def _discover(self) -> Discovery:
        issuer = self._settings.issuer
        url = issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            metadata = read(Discovery, self.get_object(url))
        except InvalidResponseError as error:
            raise self.failure(f"{url}: {error}") from error
        if metadata.issuer != issuer:
            raise self.failure(f"it calls itself {clip(metadata.issuer, 200)!r}, not {issuer!r}")
        return metadata

    def _fetch_keys(self) -> list[dict[str, Any]]:
        url = self.endpoint("jwks_uri")
        try:
            keys = read(PublishedKeys, self.get_object(url)).keys
        except InvalidResponseError as error:
            raise self.failure(f"{url}: {error}") from error
        usable = [key for key in keys if _is_usable(key)]
        if not usable:
            raise self.failure("it publishes no keys for signatures")
        return usable


def _is_usable(key: Any) -> bool:
    if not isinstance(key, dict) or key.get("kty") not in _KEY_TYPES:
        return False
    if key.get("use", "sig") != "sig":
        return False
    try:
        KeySet.import_key_set({"keys": [key]})
    except Exception:  # the library may raise anything for a malformed key
        return False
    return True
