"""A registry's documents, each read by one strict model: token, index, manifest, configuration.

What is read of them is checked, in type and size; other fields are passed over, as the OCI image
specification says. A reader raises Odd, whose text says what was found where.
"""

from __future__ import annotations

import re

from portal.node.common.json_text import NotJson, decode_object

MAX_DOCUMENT = 4 << 20
"""Bytes of one document."""
_MOST_ENTRIES = 1000
"""Images in an index, layers in a manifest."""
_LARGEST = 1 << 50
"""Bytes that a layer may say to have; more than any disk of a node."""
_DIGEST = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[A-Za-z0-9=_-]{32,256}")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_WORD = re.compile(r"[A-Za-z0-9._-]{0,64}")
_TOKEN = re.compile(r"[!-~]{1,65536}")
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = ", ".join(_INDEXES + _MANIFESTS)


class Odd(Exception):
    """The answer is no such document; the text says why."""


class TooOld(Odd):
    """It is a document of another kind, such as an image of Docker's first format."""


class Blob:
    """What a manifest says of one of its files, or an index of a manifest."""

    __slots__ = ("digest", "size")

    def __init__(self, digest: str, size: int) -> None:
        self.digest = digest
        self.size = size


class Platform:
    """A manifest in an index, and what it is made for; "" if the index does not say it."""

    __slots__ = ("architecture", "blob", "system")

    def __init__(self, blob: Blob, architecture: str, system: str) -> None:
        self.blob = blob
        self.architecture = architecture
        self.system = system


class Manifest:
    """An image's configuration and layers."""

    __slots__ = ("config", "layers")

    def __init__(self, config: Blob, layers: list[Blob]) -> None:
        self.config = config
        self.layers = layers


def read_token(body: bytes) -> str:
    """The token of a token service; `token` is its name, `access_token` OAuth's."""
    found = _document(body)
    for name in ("token", "access_token"):
        value = found.get(name)
        if value not in (None, ""):
            return _text(value, name, _TOKEN)
    raise Odd("it has no token")


def read_image(kind: str, body: bytes) -> list[Platform] | Manifest:
    """An index, or the manifest of one image; `kind`: the answer's media type."""
    found = _document(body)
    if kind in _INDEXES or "manifests" in found:
        entries = _entries(found, "manifests")
        return [_platform(entry, f"manifests[{number}]") for number, entry in enumerate(entries)]
    if "config" not in found or "layers" not in found:
        raise TooOld("it has no config and layers")
    config = _blob(found["config"], "config", MAX_DOCUMENT)
    layers = _entries(found, "layers")
    return Manifest(config, [_blob(one, f"layers[{n}]", _LARGEST) for n, one in enumerate(layers)])


def read_architecture(body: bytes) -> str:
    """What an image is made for, as its configuration says; "" if it does not."""
    return _text(_document(body).get("architecture", ""), "architecture", _WORD)


def is_sha256(digest: str) -> bool:
    """Whether it is a digest that can be compared."""
    return _SHA256.fullmatch(digest) is not None


def _document(body: bytes) -> dict[str, object]:
    try:
        return decode_object(body)
    except NotJson as error:
        raise Odd(f"it {error}") from None


def _entries(found: dict[str, object], name: str) -> list[object]:
    value = found.get(name)
    if not isinstance(value, list):
        raise Odd(f"{name} is not a list")
    if len(value) > _MOST_ENTRIES:
        raise Odd(f"{name} has {len(value)} entries, and may have {_MOST_ENTRIES}")
    return value


def _platform(entry: object, name: str) -> Platform:
    blob = _blob(entry, name, MAX_DOCUMENT)
    platform = _object(_object(entry, name).get("platform", {}), f"{name}.platform")
    architecture = _text(platform.get("architecture", ""), f"{name}.platform.architecture", _WORD)
    return Platform(blob, architecture, _text(platform.get("os", ""), f"{name}.platform.os", _WORD))


def _blob(value: object, name: str, largest: int) -> Blob:
    found = _object(value, name)
    size = found.get("size")
    if type(size) is not int or not 0 <= size <= largest:
        raise Odd(f"{name}.size is not a number of bytes from 0 to {largest}")
    return Blob(_text(found.get("digest"), f"{name}.digest", _DIGEST), size)


def _object(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Odd(f"{name} is not an object")
    return value


def _text(value: object, name: str, form: re.Pattern[str]) -> str:
    if not isinstance(value, str):
        raise Odd(f"{name} is not a text")
    if not form.fullmatch(value):
        raise Odd(f"{name} has characters or a length that it cannot have")
    return value
