"""A registry that lies: whatever it answers ends in one sentence for the image's owner."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.registries import (
    HERE,
    LOGIN,
    MANIFEST,
    OTHER,
    FakeRegistry,
    blob,
    digest_of,
    encoded,
    layer,
    refusal_of,
)

CONFIG = {"architecture": HERE}
DEEP = b'{"a":' * 100_000


def deep(depth: int) -> Any:
    found: Any = "x"
    for _ in range(depth):
        found = [found]
    return found


def manifest(**changes: Any) -> dict[str, Any]:
    return {"config": blob(CONFIG), "layers": [layer()], **changes}


def layers(*sizes: Any) -> dict[str, Any]:
    return manifest(layers=[layer(size) for size in sizes])


def config(**changes: Any) -> dict[str, Any]:
    return manifest(config=blob(CONFIG, **changes))


def index(*entries: Any) -> dict[str, Any]:
    return {"manifests": list(entries)}


def entry(**changes: Any) -> dict[str, Any]:
    platform = {"os": "linux", "architecture": HERE}
    return {**blob(manifest()), "platform": platform, **changes}


def platform(**changes: Any) -> dict[str, Any]:
    return index(entry(platform={"os": "linux", "architecture": HERE, **changes}))


def raw(data: Any, number: str) -> bytes:
    """JSON with a number that Python's own encoder does not write."""
    return json.dumps(data).replace('"NUMBER"', number).encode()


SIZE = "size is not a number of bytes from 0 to "
WORD = "has characters or a length that it cannot have"
TOKENS: dict[str, tuple[Any, str]] = {
    "null": (None, "it is not a JSON object"),
    "a list": ([], "it is not a JSON object"),
    "a text": ("abc", "it is not a JSON object"),
    "nothing": (b"", "it is not valid JSON"),
    "no UTF-8": (b'{"token": "\xff"}', "it has characters that are not valid UTF-8"),
    "100,000 deep": (DEEP, "it is nested too deeply"),
    "no token": ({}, "it has no token"),
    "token null": ({"token": None}, "it has no token"),
    "token a number": ({"token": 5}, "token is not a text"),
    "token true": ({"token": True}, "token is not a text"),
    "token a list": ({"token": ["abc"]}, "token is not a text"),
    "token an object": ({"token": {}}, "token is not a text"),
    "access_token a list": ({"access_token": [1]}, "access_token is not a text"),
    "token with a header": ({"token": "abc\r\nX-Evil: 1"}, f"token {WORD}"),
    "token with NUL": ({"token": "a\0"}, f"token {WORD}"),
    "token with a letter of Latin-1": ({"token": "\xe9"}, f"token {WORD}"),
    "token with a surrogate": (
        b'{"token": "\\ud800"}',
        "it has characters that are not valid UTF-8",
    ),
    "token of 70,000 characters": ({"token": "x" * 70_000}, f"token {WORD}"),
    "token twice": (b'{"token": "a", "token": "b"}', 'it has the key "token" twice'),
}
MANIFESTS: dict[str, tuple[Any, str]] = {
    "null": (None, "it is not a JSON object"),
    "a list": ([manifest()], "it is not a JSON object"),
    "a number": (5, "it is not a JSON object"),
    "a text": ("manifest", "it is not a JSON object"),
    "nothing": (b"", "it is not valid JSON"),
    "cut off": (encoded(manifest())[:-5], "it is not valid JSON"),
    "no UTF-8": (b"\xff\xfe", "it has characters that are not valid UTF-8"),
    "100,000 deep": (DEEP, "it is nested too deeply"),
    "400 deep where nothing is read": (manifest(annotations=deep(400)), "it is nested too deeply"),
    "manifests null": ({"manifests": None}, "manifests is not a list"),
    "manifests a text": ({"manifests": "abc"}, "manifests is not a list"),
    "manifests a number": ({"manifests": 5}, "manifests is not a list"),
    "manifests an object": ({"manifests": {"a": 1}}, "manifests is not a list"),
    "manifests empty": (index(), "is made for no architecture at all"),
    "manifests of 1,001": (index(*[entry()] * 1001), "manifests has 1001 entries"),
    "an entry null": (index(None), "manifests[0] is not an object"),
    "an entry a text": (index(entry(), "abc"), "manifests[1] is not an object"),
    "an entry a list": (index([]), "manifests[0] is not an object"),
    "platform null": (index(entry(platform=None)), "manifests[0].platform is not an object"),
    "platform a text": (index(entry(platform="linux")), "manifests[0].platform is not an object"),
    "platform a list": (index(entry(platform=[])), "manifests[0].platform is not an object"),
    "architecture null": (platform(architecture=None), "platform.architecture is not a text"),
    "architecture a list": (platform(architecture=[HERE]), "platform.architecture is not a text"),
    "architecture deep": (platform(architecture=deep(400)), "it is nested too deeply"),
    "architecture with escapes": (platform(architecture="\x1b[2Jx"), f"architecture {WORD}"),
    "architecture with a line": (platform(architecture="a\nb"), f"architecture {WORD}"),
    "architecture that reorders": (platform(architecture="\u202ea"), f"architecture {WORD}"),
    "os a list": (platform(os=[]), "manifests[0].platform.os is not a text"),
    "an entry's digest null": (index(entry(digest=None)), "manifests[0].digest is not a text"),
    "an entry's digest a number": (index(entry(digest=5)), "manifests[0].digest is not a text"),
    "an entry's digest short": (index(entry(digest="sha256:1")), f"manifests[0].digest {WORD}"),
    "an entry's digest a path": (
        index(entry(digest="sha256:../../../" + "1" * 64)),
        f"manifests[0].digest {WORD}",
    ),
    "an entry's size null": (index(entry(size=None)), f"manifests[0].{SIZE}"),
    "an entry's size -5": (index(entry(size=-5)), f"manifests[0].{SIZE}"),
    "an entry's size another": (index(entry(size=5)), "answered with another image than sha256:"),
    "an entry's size infinite": (raw(index(entry(size="NUMBER")), "1e999"), "too large"),
    "config null": (manifest(config=None), "config is not an object"),
    "config a text": (manifest(config="abc"), "config is not an object"),
    "config a list": (manifest(config=[1]), "config is not an object"),
    "config's digest null": (config(digest=None), "config.digest is not a text"),
    "config's digest a list": (config(digest=[]), "config.digest is not a text"),
    "config's digest not sha256": (config(digest="sha512:" + "1" * 128), "without a sha256 digest"),
    "config's size -5": (config(size=-5), f"config.{SIZE}"),
    "config's size a text": (config(size="5"), f"config.{SIZE}"),
    "config of 1 TiB": (config(size=1 << 40), f"config.{SIZE}"),
    "config larger than it says": (config(size=3), "answered with more than 3 bytes"),
    "config is another file": (
        config(digest=digest_of(b"other")),
        f"answered with another file than {digest_of(b'other')}",
    ),
    "layers null": (manifest(layers=None), "layers is not a list"),
    "layers a text": (manifest(layers="abc"), "layers is not a list"),
    "layers a number": (manifest(layers=5), "layers is not a list"),
    "layers an object": (manifest(layers={"size": 5}), "layers is not a list"),
    "layers of 1,001": (layers(*[1] * 1001), "layers has 1001 entries, and may have 1000"),
    "a layer null": (manifest(layers=[layer(), None]), "layers[1] is not an object"),
    "a layer a text": (manifest(layers=["abc"]), "layers[0] is not an object"),
    "a layer without size": (manifest(layers=[{}]), f"layers[0].{SIZE}"),
    "size null": (layers(None), f"layers[0].{SIZE}"),
    "size a text": (layers("x"), f"layers[0].{SIZE}"),
    "size a list": (layers([5]), f"layers[0].{SIZE}"),
    "size true": (layers(True), f"layers[0].{SIZE}"),
    "size 1.5": (layers(1.5), f"layers[0].{SIZE}"),
    "size -5": (layers(7, -5), f"layers[1].{SIZE}"),
    "size of 2 EiB": (layers(2 << 60), f"layers[0].{SIZE}"),
    "size infinite": (raw(layers("NUMBER"), "Infinity"), "Infinity is not a JSON number"),
    "size 1e999": (raw(layers("NUMBER"), "1e999"), "it has a number that is too large"),
    "size NaN": (raw(layers("NUMBER"), "NaN"), "NaN is not a JSON number"),
    "size of 100,000 digits": (raw(layers("NUMBER"), "9" * 100_000), f"layers[0].{SIZE}"),
    "layers twice": (encoded(manifest())[:-1] + b', "layers": []}', "twice"),
}
CONFIGS: dict[str, tuple[Any, str]] = {
    "null": (None, "it is not a JSON object"),
    "a list": ([], "it is not a JSON object"),
    "a text": ("abc", "it is not a JSON object"),
    "100,000 deep": (DEEP, "it is nested too deeply"),
    "400 deep where nothing is read": ({**CONFIG, "history": deep(400)}, "nested too deeply"),
    "architecture null": ({"architecture": None}, "architecture is not a text"),
    "architecture a number": ({"architecture": 5}, "architecture is not a text"),
    "architecture a list": ({"architecture": [HERE]}, "architecture is not a text"),
    "architecture with escapes": ({"architecture": "\x1b]0;evil\x07"}, f"architecture {WORD}"),
    "architecture with a line": ({"architecture": "x\nSlipway: done"}, f"architecture {WORD}"),
    "architecture with U+2028": ({"architecture": "x\u2028y"}, f"architecture {WORD}"),
    "architecture of 100 characters": ({"architecture": "x" * 100}, f"architecture {WORD}"),
    "architecture another": ({"architecture": OTHER}, f"is made for {OTHER}"),
}


def checked(server: FakeRegistry, words: str) -> None:
    text = refusal_of(server, login=LOGIN)
    assert text.isprintable()
    assert len(text) < 300
    assert words in text


@pytest.mark.parametrize("case", TOKENS)
def test_odd_tokens(server: FakeRegistry, case: str) -> None:
    data, words = TOKENS[case]
    server.image("1")
    server.challenge, server.wanted = f'Bearer realm="http://{server.host}/token"', "another"
    server.put("/token", data)
    checked(server, f"HOST did not answer as a registry does: {words}")


@pytest.mark.parametrize("case", MANIFESTS)
def test_odd_indexes_and_manifests(server: FakeRegistry, case: str) -> None:
    data, words = MANIFESTS[case]
    server.put("/v2/team/tool/blobs/x", CONFIG)
    server.answers["/v2/team/tool/blobs/" + digest_of(b"other")] = ("x/x", encoded(CONFIG))
    server.put("/v2/team/tool/manifests/x", manifest())
    server.put(MANIFEST, data)
    checked(server, words)


@pytest.mark.parametrize("case", CONFIGS)
def test_odd_configurations(server: FakeRegistry, case: str) -> None:
    data, words = CONFIGS[case]
    server.put("/v2/team/tool/blobs/x", data)
    server.put(MANIFEST, manifest(config=blob(data)))
    checked(server, words)


def test_an_index_of_indexes(server: FakeRegistry) -> None:
    server.put("/v2/team/tool/manifests/x", index(entry()))
    server.put(MANIFEST, index({**entry(), **blob(index(entry()))}))
    checked(server, "is an index that names another index")


OK = b"HTTP/1.1 200 OK\r\n"
MIB = bytes(1 << 20)
ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a document": lambda: itertools.chain([OK, b"\r\n"], itertools.repeat(MIB)),
    "a document of a length": lambda: itertools.chain(
        [OK, b"Content-Length: 99999999999\r\n\r\n"], itertools.repeat(MIB)
    ),
    "chunks": lambda: itertools.chain(
        [OK, b"Transfer-Encoding: chunked\r\n\r\n"],
        itertools.repeat(b"100000\r\n" + MIB + b"\r\n"),
    ),
    "a chunk of -1": lambda: itertools.chain(
        [OK, b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"], itertools.repeat(MIB)
    ),
    "a redirect's body": lambda: itertools.chain(
        [b"HTTP/1.1 307 There\r\nLocation: /none\r\n\r\n"], itertools.repeat(MIB)
    ),
    "an error's body": lambda: itertools.chain([b"HTTP/1.1 500 No\r\n\r\n"], itertools.repeat(MIB)),
    "a header": lambda: itertools.chain([OK, b"X: "], itertools.repeat(b"x" * 100_000)),
    "headers": lambda: itertools.chain([OK], itertools.repeat(b"X: " + b"x" * 60_000 + b"\r\n")),
    "a status": lambda: itertools.repeat(MIB),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_endless_answers_are_read_only_so_far(server: FakeRegistry, case: str) -> None:
    sent = [0]

    def counted() -> Iterator[bytes]:
        for piece in ENDLESS[case]():
            yield piece
            sent[0] += len(piece)
            if sent[0] > 200 << 20:
                return

    server.raw[MANIFEST] = counted()
    tracemalloc.start()
    try:
        checked(server, "HOST" if case != "a redirect's body" else "there is no image")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert sent[0] < 100 << 20


HTTP = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a status that is no number": b"HTTP/1.1 abc\r\n\r\n",
    "a status of 20 digits": b"HTTP/1.1 " + b"2" * 20 + b" OK\r\n\r\n",
    "a status with escapes": b"HTTP/1.1 \x1b[2J\r\n\r\n",
    "a chunk that is no number": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a length that is no number": OK + b"Content-Length: x\r\n\r\n",
    "a negative length": OK + b"Content-Length: -5\r\n\r\n{}",
    "shorter than its length": OK + b"Content-Length: 50\r\n\r\n{}",
    "no content": b"HTTP/1.1 204 None\r\n\r\n",
    "a type with escapes": OK + b"Content-Type: \x1b[2J\xff\r\n\r\n{}",
    "an odd challenge": b"HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm=\r\n\r\n",
    "a challenge with escapes": (
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm="http://\x1b[2J\xff"\r\n\r\n'
    ),
    "a challenge without a host": (
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm="http://["\r\n\r\n'
    ),
}


@pytest.mark.parametrize("case", HTTP)
def test_odd_http(server: FakeRegistry, case: str) -> None:
    server.raw[MANIFEST] = [HTTP[case]]
    text = refusal_of(server, login=LOGIN)
    assert text.isprintable()
    assert "HOST" in text
    assert not server.asked[1:]
