"""References such as docker://registry.example.org/team/tool:1.2."""

from __future__ import annotations

import re

SCHEME = "docker://"
_HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<host>{_HOST})/(?P<name>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
MAX_LENGTH = 255


class Reference:
    """One image of a registry."""

    __slots__ = ("digest", "host", "name", "tag")

    def __init__(self, host: str, name: str, tag: str, digest: str) -> None:
        self.host = host
        """With its port, if it has one."""
        self.name = name
        self.tag = tag
        self.digest = digest
        """"" unless the reference names it."""

    @property
    def revision(self) -> str:
        """The digest, or else the tag, to request from the registry."""
        return self.digest or self.tag

    def __str__(self) -> str:
        """The reference as docker://HOST/NAME:TAG@DIGEST."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{SCHEME}{self.host}/{self.name}{tag}{digest}"


def parse(text: str) -> Reference:
    """Parse a reference; raises ValueError with a message for users."""
    if not text.startswith(SCHEME):
        raise ValueError(f"write the address of an image as {SCHEME}HOST/NAME:TAG")
    match = _REFERENCE.fullmatch(text[len(SCHEME) :]) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(
            f"write it as {SCHEME}HOST/NAME:TAG, for example "
            f"{SCHEME}registry.example.org/team/tool:1.2"
        )
    host, digest = match["host"], match["digest"] or ""
    if "." not in host and ":" not in host and host != "localhost":
        raise ValueError(
            f"name the registry's host as well: {SCHEME}registry.example.org/{host}/{match['name']}"
        )
    return Reference(host, match["name"], match["tag"] or ("" if digest else "latest"), digest)


def is_host(text: str) -> bool:
    """Whether this is a valid registry host, with an optional port."""
    return len(text) <= MAX_LENGTH and re.fullmatch(_HOST, text) is not None


def host_problem(host: str, registries: list[str]) -> str:
    """Why images of this registry cannot be used; "" if they can. "*" permits all registries."""
    if host in registries or "*" in registries:
        return ""
    allowed = ", ".join(registries) or "none"
    return f"images from {host} are not permitted here; these registries are: {allowed}"
