"""Resolve a reference at its registry, before anything is downloaded.

The protocol is the OCI distribution specification. Answers are not trusted: `exchange` bounds them,
`documents` validates them, and content that is named by a digest must match it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import urllib.parse

from portal.node.batch.image import ImageError, sif
from portal.node.batch.image.documents import (
    ACCEPT,
    MAX_DOCUMENT,
    Blob,
    InvalidDocument,
    Manifest,
    Platform,
    TooOld,
    is_sha256,
    read_architecture,
    read_image,
    read_token,
)
from portal.node.batch.image.exchange import Answer, Exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from portal.node.common.reference import Reference

    Document = TypeVar("Document")

_SAVE = (
    'For sessions, save yours on the portal\'s page "Registry logins"; for batch jobs, by '
    "`apptainer registry login` on the cluster"
)
_PARAMETER = re.compile(r'([a-z]+)="([^"]*)"')


class Resolved:
    """An image of this node's architecture; `size`: bytes of its compressed layers."""

    __slots__ = ("digest", "size")

    def __init__(self, digest: str, size: int) -> None:
        self.digest = digest
        self.size = size


class Login:
    """A user and a password, or token, for one registry."""

    __slots__ = ("password", "user")

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self.password = password

    @property
    def basic(self) -> str:
        """The credentials of HTTP's Basic scheme."""
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


class Registry:
    """One registry, for one user; all requests share one deadline."""

    def __init__(self, host: str, login: Login | None, *, insecure: bool = False) -> None:
        self._host = host
        self._login = login
        self._insecure = insecure
        self._authorization = ""
        self._exchange = Exchange(host, insecure=insecure)

    def resolve(self, reference: Reference) -> Resolved:
        """Return the image of a reference for this node; raises ImageError."""
        document, digest = self._image(reference, reference.revision)
        if isinstance(document, Manifest):
            self._check_architecture(reference, document.config)
        else:
            chosen = _of_this_node(reference, document)
            document, digest = self._image(reference, chosen.digest, chosen.size)
            if not isinstance(document, Manifest):
                raise ImageError(f"{reference} is an index that names another index")
        return Resolved(digest, sum(layer.size for layer in document.layers))

    def _image(
        self, reference: Reference, tag_or_digest: str, size: int | None = None
    ) -> tuple[list[Platform] | Manifest, str]:
        answer = self._get(reference, f"manifests/{tag_or_digest}", ACCEPT, MAX_DOCUMENT)
        digest = "sha256:" + hashlib.sha256(answer.body).hexdigest()
        if (tag_or_digest.startswith("sha256:") and tag_or_digest != digest) or size not in (
            None,
            len(answer.body),
        ):
            raise ImageError(f"{self._host} answered with another image than {tag_or_digest}")
        kind = answer.headers.get_content_type()
        try:
            return self._read(lambda body: read_image(kind, body), answer.body), digest
        except TooOld:
            raise ImageError(f"{reference} is in a format that is too old, or no image") from None

    def _check_architecture(self, reference: Reference, config: Blob) -> None:
        if not is_sha256(config.digest):
            raise ImageError(f"{reference} has a configuration without a sha256 digest")
        body = self._get(reference, f"blobs/{config.digest}", "*/*", config.size).body
        if config.digest != "sha256:" + hashlib.sha256(body).hexdigest():
            raise ImageError(f"{self._host} answered with another file than {config.digest}")
        made_for = self._read(read_architecture, body)
        if made_for and made_for != sif.architecture():
            raise ImageError(_wrong_architecture(reference, [made_for]))

    def _read(self, reader: Callable[[bytes], Document], body: bytes) -> Document:
        try:
            return reader(body)
        except TooOld:
            raise
        except InvalidDocument as error:
            text = f"{self._host} did not answer as a registry does: {error}"
            raise ImageError(text) from None

    def _get(self, reference: Reference, path: str, accept: str, most: int) -> Answer:
        """Return a successful answer; logs in if the registry asks for it. Raises ImageError."""
        url = f"{self._scheme}://{self._host}/v2/{reference.name}/{path}"
        answer = self._exchange.get(url, accept, self._authorization, most)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status == 401 and challenge:
            self._authorization = self._answer(challenge)
            answer = self._exchange.get(url, accept, self._authorization, most)
        if answer.status != 200:
            raise ImageError(self._refusal(reference, answer.status))
        return answer

    @property
    def _scheme(self) -> str:
        return "http" if self._insecure else "https"

    def _answer(self, challenge: str) -> str:
        """Return the Authorization header for a registry's challenge; raises ImageError."""
        kind, _, fields = challenge.partition(" ")
        parameters = dict(_PARAMETER.findall(fields))
        basic = f"Basic {self._login.basic}" if self._login else ""
        if kind.lower() == "basic":
            return basic
        realm = parameters.get("realm", "")
        # A registry must not make the client send a password in clear text.
        if kind.lower() != "bearer" or not realm.startswith(("https://", f"{self._scheme}://")):
            raise ImageError(f"the registry {self._host} asks for a login that is not supported")
        query = {name: parameters[name] for name in ("service", "scope") if name in parameters}
        url = self._token_url(realm, query)
        answer = self._exchange.get(url, "application/json", basic, MAX_DOCUMENT)
        if answer.status in (401, 403):
            raise ImageError(
                f"{self._host} does not accept your saved login. {_SAVE}"
                if self._login
                else f"{self._host} wants a login. {_SAVE}"
            )
        if answer.status != 200:
            raise ImageError(f"the token service of {self._host} answered {answer.status}")
        return f"Bearer {self._read(read_token, answer.body)}"

    def _token_url(self, realm: str, parameters: dict[str, str]) -> str:
        try:
            parts = urllib.parse.urlsplit(realm)
            is_own = self._exchange.is_own(realm)
        except ValueError:
            raise ImageError(
                f"the registry {self._host} asks for a login that is not supported"
            ) from None
        # Without TLS, an attacker could name the service that gets the password.
        if self._insecure and not is_own:
            raise ImageError(
                f"the registry {self._host}, which is asked without TLS, wants logins sent to "
                f"another host: {realm[:100]}"
            )
        query = "&".join(filter(None, (parts.query, urllib.parse.urlencode(parameters))))
        return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))

    def _refusal(self, reference: Reference, code: int) -> str:
        if code in (401, 403):
            if self._login is None:
                return f"{self._host} wants a login for {reference}. {_SAVE}"
            return f"{self._host} does not accept your saved login for {reference}. {_SAVE}"
        if code == 404:
            return f"there is no image {reference}"
        return f"the registry {self._host} answered {code} for {reference}"


def _of_this_node(reference: Reference, index: list[Platform]) -> Blob:
    """Select this node's image from an index of several architectures."""
    architecture = sif.architecture()
    for platform in index:
        if (
            platform.architecture == architecture
            and platform.system in ("", "linux")
            and is_sha256(platform.blob.digest)
        ):
            return platform.blob
    others = [
        platform.architecture
        for platform in index
        if platform.architecture not in ("", "unknown", architecture)
    ]
    raise ImageError(_wrong_architecture(reference, others))


def _wrong_architecture(reference: Reference, others: list[str]) -> str:
    made_for = ", ".join(dict.fromkeys(others[:20])) or "no architecture at all"
    return f"{reference} is made for {made_for}, but the node is {sif.architecture()}"
