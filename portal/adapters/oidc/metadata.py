"""What the provider publishes: its metadata (discovery) and its keys."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from joserfc.jwk import KeySet

from portal.config import OidcSettings
from portal.errors import Unavailable

log = logging.getLogger(__name__)

SECONDS = (4.0, 8.0)
"""To connect, and between two pieces of an answer."""
MAX_ANSWER = 1 << 20
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 10.0
"""Least time between two requests for keys because of a token whose key is not known."""
_KEY_TYPES = ("RSA", "EC", "OKP")
"""Those of public keys: a provider's symmetric key, if it published one, verifies nothing."""


class Document:
    """A JSON document of the provider's, kept for an hour; an outage does not take it away."""

    def __init__(
        self, fetch: Callable[[], dict[str, Any]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._found: dict[str, Any] | None = None
        self._since = 0.0

    def get(self, older_than: float = KEPT_SECONDS) -> dict[str, Any]:
        """The document, fetched anew if it is older than this; raises Unavailable."""
        with self._lock:
            now = self._monotonic()
            if self._found is not None and now - self._since < older_than:
                return self._found
            try:
                self._found = self._fetch()
            except Unavailable:
                if self._found is None:
                    raise
                log.warning("the provider does not answer: its last metadata and keys still count")
            self._since = now
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
            found = json.loads(text) if len(text) <= MAX_ANSWER else None
        except (requests.RequestException, OSError, ValueError, RecursionError) as error:
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
