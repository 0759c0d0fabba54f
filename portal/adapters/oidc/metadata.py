"""What the provider publishes: its metadata (discovery) and its keys."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from joserfc.jwk import KeySet

from portal.config import OidcSettings
from portal.core.json_text import decode_json
from portal.errors import Unavailable

log = logging.getLogger(__name__)

SECONDS = (4.0, 8.0)
"""To connect, and between two pieces of an answer."""
MAX_ANSWER = 1 << 20
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 10.0
"""Least time between two requests for keys because of a token whose key is not known."""
PATIENCE = 1.0
"""Seconds that a thread waits for another one's request; the process has few of them."""
SILENT_SECONDS = 5.0
"""How long nobody asks again after a request that failed, if nothing is known yet."""
_KEY_TYPES = ("RSA", "EC", "OKP")
"""Those of public keys: a provider's symmetric key, if it published one, verifies nothing."""


class Document:
    """A JSON document of the provider's, kept for an hour; an outage does not take it away.

    Anybody can make a process ask for it, and the provider may take long to answer or to fail.
    """

    def __init__(
        self, fetch: Callable[[], dict[str, Any]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._found: dict[str, Any] | None = None
        self._since = 0.0
        self._failed: Unavailable | None = None

    def get(self, older_than: float = KEPT_SECONDS) -> dict[str, Any]:
        """The document, fetched anew if it is older than this; raises Unavailable."""
        if not self._lock.acquire(timeout=PATIENCE):
            if self._found is None:
                raise Unavailable("The log-in service does not answer. Try again in a minute.")
            return self._found
        try:
            return self._get(older_than)
        finally:
            self._lock.release()

    def _get(self, older_than: float) -> dict[str, Any]:
        age = self._monotonic() - self._since
        if self._found is not None and age < older_than:
            return self._found
        if self._failed is not None and age < SILENT_SECONDS:
            raise self._failed
        try:
            self._found, self._failed = self._fetch(), None
        except Unavailable as error:
            if self._found is None:
                self._failed = error
                raise
            log.warning("the provider does not answer: its last metadata and keys still count")
        finally:
            self._since = self._monotonic()
        return self._found


class Metadata:
    """The provider's metadata and keys."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._discovered = Document(self._discover)
        self._published = Document(self._fetch_keys)

    def get(self) -> dict[str, Any]:
        """The metadata; raises Unavailable."""
        return self._discovered.get()

    def endpoint(self, name: str) -> str:
        """An endpoint's address; raises Unavailable if there is none, or one that is not https."""
        url = self.optional_endpoint(name)
        if not url:
            raise self.failure(f"its metadata has no valid {name}")
        return url

    def optional_endpoint(self, name: str) -> str:
        """The same, or "" if there is none."""
        url = self.get().get(name)
        if not isinstance(url, str):
            return ""
        parts, issuer = urlsplit(url), urlsplit(self._settings.issuer)
        allowed = parts.scheme == "https" or (parts.scheme, issuer.scheme) == ("http", "http")
        return url if allowed and parts.hostname and url.isprintable() else ""

    def keys(self, anew: bool = False) -> KeySet:
        """The keys that sign its tokens; `anew`: since one was not among them."""
        found = self._published.get(RETRY_SECONDS if anew else KEPT_SECONDS)
        return KeySet.import_key_set({"keys": found["keys"]})

    def ask(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        """The provider's JSON answer; raises Unavailable."""
        ca = self._settings.ca_file or True
        try:
            with requests.request(
                method,
                url,
                timeout=SECONDS,
                verify=ca,
                stream=True,
                allow_redirects=False,
                **options,
            ) as answer:
                text = answer.raw.read(MAX_ANSWER + 1, decode_content=True)
                status = answer.status_code
            found = decode_json(text) if len(text) <= MAX_ANSWER else None
        except (requests.RequestException, OSError, ValueError) as error:
            raise self.failure(f"{url}: {error}") from error
        if status != 200 or not isinstance(found, dict):
            raise self.failure(f"{url}: status {status}, or no JSON object")
        return found

    def failure(self, why: str) -> Unavailable:
        """The error for users; the cause is written to the log."""
        log.error("OpenID provider %s: %s", self._settings.issuer, why)
        return Unavailable(
            f"{self._settings.title} does not answer as it should. Try again in a moment."
        )

    def _discover(self) -> dict[str, Any]:
        issuer = self._settings.issuer
        found = self.ask("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise self.failure(f"it calls itself {found.get('issuer')!r}, not {issuer!r}")
        return found

    def _fetch_keys(self) -> dict[str, Any]:
        keys = self.ask("GET", self.endpoint("jwks_uri")).get("keys")
        usable = [key for key in keys if _is_usable(key)] if isinstance(keys, list) else []
        if not usable:
            raise self.failure("it publishes no keys for signatures")
        return {"keys": usable}


def _is_usable(key: Any) -> bool:
    if not isinstance(key, dict) or key.get("kty") not in _KEY_TYPES:
        return False
    if key.get("use", "sig") != "sig":
        return False
    try:
        KeySet.import_key_set({"keys": [key]})
    except Exception:  # whatever a library says of another's odd key
        return False
    return True
