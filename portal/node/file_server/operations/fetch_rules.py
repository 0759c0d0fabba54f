"""The site's rules for fetching files from URLs."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PORTS = {"https": 443, "http": 80}
LONGEST = 8192
"""Characters of a URL."""
_SAFE = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@dataclass(frozen=True)
class Source:
    """Where a file is fetched from."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, percent-encoded."""
    is_named: bool
    """Whether the site names this host itself; then its address may be a private one."""


@dataclass(frozen=True)
class FetchRules:
    """From where files may be fetched: from nowhere, unless the site says so."""

    hosts: Sequence[str] = ()
    """Such as “data.example.org”, “data.example.org:8443”, “*.example.org” or “*”."""
    http: bool = False
    """Whether addresses without TLS are permitted."""
    proxy: str = ""
    """URL of the site's proxy; those of the user's environment are not used."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> FetchRules:
        """The rules in an order."""
        return cls(tuple(data.get("hosts", ())), bool(data.get("http")), data.get("proxy", ""))

    def source(self, url: str) -> Source:
        """Parse a URL; raises Refused if it is not permitted."""
        try:
            parts = urlsplit(url.strip())
            host = (parts.hostname or "").rstrip(".").encode("idna").decode()
            port = parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            host, port = "", 0
        if not host or not port or len(url) > LONGEST:
            raise Refused(422, "value", "This is not the URL of a file.", "url")
        if parts.scheme == "http" and not self.http:
            raise Refused(422, "value", "Only URLs that begin with https:// are permitted.", "url")
        if parts.username is not None:
            raise Refused(422, "value", "Write the URL without a name or password in it.", "url")
        target = quote(parts.path or "/", safe=_SAFE)
        target += f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
        return Source(parts.scheme, host, port, target, self._names(parts.scheme, host, port))

    def _names(self, scheme: str, host: str, port: int) -> bool:
        """Whether the site names a host, not only by a pattern; raises Refused if neither."""
        is_permitted = False
        for entry in self.hosts:
            name, _, number = entry.lower().partition(":")
            if port != (int(number) if number else PORTS[scheme]):
                continue
            if name == host:
                return True
            is_permitted |= name == "*" or (name.startswith("*.") and host.endswith(name[1:]))
        if not is_permitted:
            permitted = f" It permits: {', '.join(self.hosts[:10])}." if self.hosts else ""
            detail = f"This site does not permit fetching files from {host}:{port}.{permitted}"
            raise Refused(403, "host", detail, "url")
        return False
