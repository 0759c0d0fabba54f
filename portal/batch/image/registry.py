"""Asks a registry which image a reference means now, before anything is downloaded.

The protocol is that of the OCI distribution specification. Its answers are not trusted: their size
is bounded, and what is named by a digest has to have it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request

from portal.batch.image import ImageError, sif

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from portal.core.launch.reference import Reference

SECONDS = 30.0
MAX_ANSWER = 4 << 20
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = ", ".join(_INDEXES + _MANIFESTS)
# Beside those of sockets and TLS: answers that are no HTTP, or too long.
_FAILURES = (OSError, ValueError, http.client.HTTPException)
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
        """Both as HTTP sends them."""
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


class Registry:
    """One registry, as one user of it."""

    def __init__(self, host: str, login: Login | None, *, insecure: bool = False) -> None:
        self._host = host
        self._login = login
        self._insecure = insecure
        self._authorization = ""

    def resolve(self, wanted: Reference) -> Resolved:
        """The image that a reference means on this node; raises ImageError."""
        kind, data, digest = self._manifest(wanted, wanted.wanted)
        if kind in _INDEXES or "manifests" in data:
            digest = _of_this_node(wanted, data)
            _, data, digest = self._manifest(wanted, digest)
        else:
            self._check_architecture(wanted, data)
        try:
            return Resolved(digest, sum(int(layer["size"]) for layer in data["layers"]))
        except (KeyError, TypeError, ValueError):
            raise ImageError(f"{wanted} is in a format that is too old, or no image") from None

    def _manifest(self, wanted: Reference, which: str) -> tuple[str, dict[str, Any], str]:
        kind, body = self._get(wanted, f"manifests/{which}", _ACCEPT)
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        if which.startswith("sha256:") and which != digest:
            raise ImageError(f"{self._host} answered with another image than {which}")
        return kind, _object(wanted.host, body), digest

    def _check_architecture(self, wanted: Reference, manifest: dict[str, Any]) -> None:
        config = manifest.get("config")
        digest = str(config.get("digest", "")) if isinstance(config, dict) else ""
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise ImageError(f"{wanted} is in a format that is too old, or no image")
        _, body = self._get(wanted, f"blobs/{digest}", "*/*")
        made_for = str(_object(wanted.host, body).get("architecture", ""))[:20]
        if made_for and made_for != sif.architecture():
            raise ImageError(_wrong_architecture(wanted, [made_for]))

    def _get(self, wanted: Reference, path: str, accept: str) -> tuple[str, bytes]:
        """The type and the body of an answer; logs in if the registry asks for it."""
        url = f"{self._scheme}://{self._host}/v2/{wanted.name}/{path}"
        for attempt in range(2):
            try:
                return self._open(url, accept)
            except urllib.error.HTTPError as error:
                challenge = error.headers.get("WWW-Authenticate", "")
                error.close()
                if error.code == 401 and attempt == 0 and challenge:
                    self._authorization = self._answer(challenge)
                    continue
                raise ImageError(self._refusal(wanted, error.code)) from None
            except _FAILURES as error:
                raise ImageError(self._unreachable(error)) from None
        raise ImageError(self._refusal(wanted, 401))

    @property
    def _scheme(self) -> str:
        return "http" if self._insecure else "https"

    def _open(self, url: str, accept: str) -> tuple[str, bytes]:
        request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310
        if self._authorization:
            # Not sent to other hosts that the answer may lead to.
            request.add_unredirected_header("Authorization", self._authorization)
        with contextlib.closing(urllib.request.urlopen(request, timeout=SECONDS)) as answer:  # noqa: S310
            body = answer.read(MAX_ANSWER + 1)
            if len(body) > MAX_ANSWER:
                raise ValueError("its answer is too long")
            return answer.headers.get_content_type(), body

    def _answer(self, challenge: str) -> str:
        """The header that answers a registry's challenge."""
        kind, _, rest = challenge.partition(" ")
        given = dict(_PARAMETER.findall(rest))
        if kind.lower() == "basic":
            return f"Basic {self._login.basic}" if self._login else ""
        realm = given.get("realm", "")
        # A password never travels in clear because a registry says so.
        if kind.lower() != "bearer" or not realm.startswith(("https://", f"{self._scheme}://")):
            raise ImageError(f"the registry {self._host} asks for a login that is not supported")
        asked = {name: given[name] for name in ("service", "scope") if name in given}
        self._authorization = f"Basic {self._login.basic}" if self._login else ""
        try:
            _, body = self._open(f"{realm}?{urllib.parse.urlencode(asked)}", "application/json")
        except urllib.error.HTTPError as error:
            error.close()
            raise ImageError(
                f"{self._host} does not accept your saved login. {_SAVE}"
                if self._login
                else f"{self._host} wants a login. {_SAVE}"
            ) from None
        except _FAILURES as error:
            raise ImageError(self._unreachable(error)) from None
        token = _object(self._host, body)
        return f"Bearer {token.get('token') or token.get('access_token', '')}"

    def _unreachable(self, error: Exception) -> str:
        return f"the registry {self._host} cannot be reached: {getattr(error, 'reason', error)}"

    def _refusal(self, wanted: Reference, code: int) -> str:
        if code in (401, 403):
            if self._login is None:
                return f"{self._host} wants a login for {wanted}. {_SAVE}"
            return f"{self._host} does not accept your saved login for {wanted}. {_SAVE}"
        if code == 404:
            return f"there is no image {wanted}"
        return f"the registry {self._host} answered {code} for {wanted}"


def _object(host: str, body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ImageError(f"{host} did not answer as a registry does")
    return found


def _of_this_node(wanted: Reference, index: dict[str, Any]) -> str:
    """The digest of the image for this node among those of several architectures."""
    others = []
    for entry in index.get("manifests", []):
        platform = entry.get("platform", {}) if isinstance(entry, dict) else {}
        name, digest = str(platform.get("architecture", ""))[:20], str(entry.get("digest", ""))
        if platform.get("os", "linux") == "linux" and name == sif.architecture():
            if re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
                return digest
        elif name not in ("", "unknown"):
            others.append(name)
    raise ImageError(_wrong_architecture(wanted, others))


def _wrong_architecture(wanted: Reference, others: list[str]) -> str:
    made_for = ", ".join(dict.fromkeys(others)) or "no architecture at all"
    return f"{wanted} is made for {made_for}, but the node is {sif.architecture()}"
