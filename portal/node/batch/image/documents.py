"""Strict readers of a registry's documents: token, index, manifest, configuration.

The fields that are used are checked in type and size; others are ignored, as the OCI image
specification requires. Readers raise InvalidDocument, whose text names the field.
"""

from __future__ import annotations

import re

from portal.node.common.json_text import NotJson, decode_object

MAX_DOCUMENT = 4 << 20
"""Bytes of one document."""
_MOST_ENTRIES = 1000
"""Images in an index, layers in a manifest."""
_LARGEST = 1 << 50
"""Maximum size of a layer in bytes; more than any disk of a node."""
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


class InvalidDocument(Exception):
    """The answer is not such a document; the text says why."""


class TooOld(InvalidDocument):
    """It is a document of another kind, such as an image of Docker's first format."""


class Blob:
    """Descriptor of a file in a manifest, or of a manifest in an index."""

    __slots__ = ("digest", "size")

    def __init__(self, digest: str, size: int) -> None:
        self.digest = digest
        self.size = size


class Platform:
    """A manifest in an index, with its architecture and system; "" if the index has none."""

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
    document = _document(body)
    for name in ("token", "access_token"):
        value = document.get(name)
        if value not in (None, ""):
            return _text(value, name, _TOKEN)
    raise InvalidDocument("it has no token")


def read_image(kind: str, body: bytes) -> list[Platform] | Manifest:
    """An index, or the manifest of one image; `kind`: the answer's media type."""
    document = _document(body)
    if kind in _INDEXES or "manifests" in document:
        entries = _entries(document, "manifests")
        return [_platform(entry, f"manifests[{number}]") for number, entry in enumerate(entries)]
    if "config" not in document or "layers" not in document:
        raise TooOld("it has no config and layers")
    config = _blob(document["config"], "config", MAX_DOCUMENT)
    layers = _entries(document, "layers")
    return Manifest(
        config, [_blob(layer, f"layers[{n}]", _LARGEST) for n, layer in enumerate(layers)]
    )


def read_architecture(body: bytes) -> str:
    """Read an image's architecture from its configuration; "" if it has none."""
    return _text(_document(body).get("architecture", ""), "architecture", _WORD)


def is_sha256(digest: str) -> bool:
    """Whether a digest is a SHA-256, which can be verified."""
    return _SHA256.fullmatch(digest) is not None


def _document(body: bytes) -> dict[str, object]:
    try:
        return decode_object(body)
    except NotJson as error:
        raise InvalidDocument(f"it {error}") from None


def _entries(document: dict[str, object], name: str) -> list[object]:
    value = document.get(name)
    if not isinstance(value, list):
        raise InvalidDocument(f"{name} is not a list")
    if len(value) > _MOST_ENTRIES:
        raise InvalidDocument(f"{name} has {len(value)} entries, and may have {_MOST_ENTRIES}")
    return value


def _platform(entry: object, name: str) -> Platform:
    blob = _blob(entry, name, MAX_DOCUMENT)
    platform = _object(_object(entry, name).get("platform", {}), f"{name}.platform")
    architecture = _text(platform.get("architecture", ""), f"{name}.platform.architecture", _WORD)
    return Platform(blob, architecture, _text(platform.get("os", ""), f"{name}.platform.os", _WORD))


def _blob(value: object, name: str, largest: int) -> Blob:
    descriptor = _object(value, name)
    size = descriptor.get("size")
    if type(size) is not int or not 0 <= size <= largest:
        raise InvalidDocument(f"{name}.size is not a number of bytes from 0 to {largest}")
    return Blob(_text(descriptor.get("digest"), f"{name}.digest", _DIGEST), size)


def _object(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidDocument(f"{name} is not an object")
    return value


def _text(value: object, name: str, form: re.Pattern[str]) -> str:
    if not isinstance(value, str):
        raise InvalidDocument(f"{name} is not a text")
    if not form.fullmatch(value):
        raise InvalidDocument(f"{name} has characters or a length that it cannot have")
    return value
