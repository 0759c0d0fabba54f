"""HTTP with a registry: its one deadline, and where its answers may lead."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portal.node.batch.image import ImageError, exchange
from portal.node.batch.image.addresses import Reach
from portal.node.batch.image.exchange import Exchange
from portal.node.batch.image.registry import Registry
from portal.node.common.reference import parse
from tests.support.registries import MANIFEST, FakeRegistry, refusal_of, resolve_digest

LATE = "the registry HOST has not answered completely within 2 seconds"
DRIPS = 60.0
"""Seconds for which a server sends its bytes, one each 0.1 s."""


def slowly(before: bytes, again: bytes) -> Iterator[bytes]:
    yield before
    end = time.monotonic() + DRIPS
    while time.monotonic() < end:
        time.sleep(0.1)
        yield again


OK = b"HTTP/1.1 200 OK\r\n"
SLOW: dict[str, Callable[[], Iterator[bytes]]] = {
    "silence": lambda: slowly(b"", b""),
    "a status": lambda: slowly(b"HTTP/1.1 2", b"0"),
    "a header": lambda: slowly(OK + b"X: ", b"x"),
    "headers": lambda: slowly(OK, b"X: x\r\n"),
    "no end of 100": lambda: slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": lambda: slowly(OK + b"\r\n", b" "),
    "chunks": lambda: slowly(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a redirect": lambda: slowly(b"HTTP/1.1 307 There\r\nLocation: /", b"x"),
}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is near."""
    monkeypatch.setattr(exchange, "SECONDS", 2.0)


@pytest.mark.parametrize("case", SLOW)
def test_a_byte_now_and_then_does_not_move_the_deadline(
    server: FakeRegistry, hasty: None, case: str
) -> None:
    server.raw[MANIFEST] = SLOW[case]()
    begun = time.monotonic()
    assert refusal_of(server) == LATE
    assert time.monotonic() - begun < DRIPS / 2


def test_all_questions_have_one_deadline(server: FakeRegistry, hasty: None) -> None:
    """None of them would be late by itself."""

    def lead() -> Iterator[bytes]:
        time.sleep(0.5)
        yield f"HTTP/1.1 307 There\r\nLocation: {MANIFEST}\r\n\r\n".encode()

    class Each:
        def __iter__(self) -> Iterator[bytes]:
            return lead()

    server.raw[MANIFEST] = Each()
    assert refusal_of(server) == LATE
    assert len(server.asked) <= 5


def test_tls_has_the_same_deadline(hasty: None) -> None:
    """A server that takes the connection, and does not begin with TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(ImageError, match="has not answered completely within 2 seconds"):
            Registry(host, None).resolve(parse(f"docker://{host}/team/tool:1"))
    assert time.monotonic() - begun < DRIPS / 2


def leads(server: FakeRegistry, target: str) -> str:
    """What is said of a redirect."""
    server.redirects[MANIFEST] = target.replace("PORT", str(server.server_port))
    server.put("/elsewhere", b"reached")
    text = refusal_of(server)
    assert text.isprintable()
    assert not [path for path, _ in server.asked if path != MANIFEST], "nothing else was asked"
    return text


NEAR = [
    "http://localhost:PORT/elsewhere",
    "http://LocalHost:PORT/elsewhere",
    "http://127.0.0.2:PORT/elsewhere",
    "//127.0.0.2:PORT/elsewhere",
    "http://127.1:PORT/elsewhere",
    "http://2130706433:PORT/elsewhere",
    "http://0x7f000001:PORT/elsewhere",
    "http://0:PORT/elsewhere",
    "http://0.0.0.0:PORT/elsewhere",
    "http://[::1]:PORT/elsewhere",
    "http://[::ffff:127.0.0.1]:PORT/elsewhere",
    "http://[64:ff9b::7f00:1]:PORT/elsewhere",
    "http://169.254.169.254/latest/meta-data",
    "http://[fe80::1]/",
    "https://localhost/elsewhere",
]


@pytest.mark.parametrize("target", NEAR)
def test_no_redirect_leads_to_this_machine(server: FakeRegistry, target: str) -> None:
    text = leads(server, target)
    assert text.startswith("the registry HOST leads to ")
    assert "which is on this machine (" in text


NOT_USED = [
    "ftp://example.org/x",
    "file:///etc/passwd",
    "data:,x",
    "http://user:pw@example.org/x",
    "http://%31%32%37.0.0.1:PORT/elsewhere",
    "http://127.0.0.1%00.example.org/",
    "http://[fe80::1%25eth0]/",
    "http://exa\x1bmple.org/",
    "http://\xe9.example.org/",
    "http://example.org:x/",
    "gopher://127.0.0.1/",
]


@pytest.mark.parametrize("target", NOT_USED, ids=ascii)
def test_addresses_that_are_not_used(server: FakeRegistry, target: str) -> None:
    assert "which is not used" in leads(server, target)


@pytest.mark.parametrize("target", ["http://[::1", "http://example.org:99999/", "http://[x]/"])
def test_addresses_that_are_none(server: FakeRegistry, target: str) -> None:
    assert leads(server, target).startswith("the registry HOST ")


def test_redirects_at_the_registry_itself(server: FakeRegistry) -> None:
    digest = server.image("2")
    server.redirects[MANIFEST] = "../manifests/2"
    assert resolve_digest(server)[0] == digest
    server.redirects[MANIFEST] = MANIFEST
    assert refusal_of(server) == "the registry HOST leads from one address to another, too often"
    assert len([path for path, _ in server.asked if path == MANIFEST]) == 1 + 6


def test_a_redirect_never_leaves_tls() -> None:
    with pytest.raises(ImageError, match=r"leads to http://registry\.example\.org/, which is not"):
        Exchange("registry.example.org").get("http://registry.example.org/", "*/*", "", 5)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Names and their addresses."""
    known: dict[str, str] = {}
    real = socket.getaddrinfo

    def look_up(host: str, *words: Any, **options: Any) -> Any:
        return real(known.get(host, host), *words, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1", "100.64.0.1"])
@pytest.mark.parametrize("name", ["inside.example.org", ""])
def test_a_registry_of_the_internet_leads_to_no_private_network(
    names: dict[str, str], address: str, name: str
) -> None:
    names["inside.example.org"] = address
    target = name or (f"[{address}]" if ":" in address else address)
    with pytest.raises(ImageError) as error:
        Exchange("registry.example.org").get(f"https://{target}/", "*/*", "", 5)
    assert str(error.value) == (
        f"the registry registry.example.org leads to {name or address}, which is in a private "
        f"network ({address})"
    )


def test_a_registry_of_a_private_network_leads_to_private_networks_and_the_internet() -> None:
    """Such as to the storage of a site's own, where its files are."""
    asked = Exchange("registry.example.org", insecure=True)
    asked._reach = Reach.PRIVATE
    asked._check_reach("storage.example.org", "10.0.0.1")
    asked._check_reach("storage.example.org", "9.9.9.9")
    with pytest.raises(ImageError, match="on this machine"):
        asked._check_reach("storage.example.org", "127.0.0.1")


def test_all_addresses_of_a_name_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 443)) for one in ("9.9.9.9", "::1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ImageError, match=r"which is on this machine \(::1\)"):
        Exchange("registry.example.org").get("https://both.example.org/", "*/*", "", 5)


def test_the_registry_itself_may_be_anywhere(names: dict[str, str], server: FakeRegistry) -> None:
    names["registry.example.org"] = "127.0.0.1"
    server.put("/x", b"fine")
    asked = Exchange(f"registry.example.org:{server.server_port}", insecure=True)
    url = f"http://registry.example.org:{server.server_port}/x"
    assert asked.get(url, "*/*", "", 5).body == b"fine"
    assert asked._reach is Reach.LOCAL


def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch, server: FakeRegistry) -> None:
    monkeypatch.setenv("http_proxy", f"http://{server.host}")
    monkeypatch.delenv("no_proxy", raising=False)
    url = "http://registry.example.org/x"
    server.answers[url] = ("text/plain", b"fine")
    asked = Exchange("registry.example.org", insecure=True)
    assert asked.get(url, "*/*", "", 5).body == b"fine"
    for near in ("localhost", "127.0.0.1", "[::1]", "10.0.0.1"):
        server.redirects[url] = f"http://{near}/"
        with pytest.raises(ImageError, match="leads to"):
            asked.get(url, "*/*", "", 5)


def test_a_proxy_that_makes_a_tunnel_has_the_same_deadline(
    monkeypatch: pytest.MonkeyPatch, hasty: None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", f"http://{host}")
        monkeypatch.delenv("no_proxy", raising=False)

        def answer() -> None:
            with contextlib.suppress(OSError):
                opened, _ = listening.accept()
                with opened:
                    for piece in slowly(b"HTTP/1.1 200 ", b"O"):
                        opened.sendall(piece)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ImageError, match="has not answered completely within 2 seconds"):
            Exchange("registry.example.org").get("https://registry.example.org/", "*/*", "", 5)


def test_an_error_is_one_line_that_can_be_shown() -> None:
    assert str(ImageError("a\nb\x1b[2J \u202e \xe9")) == "a\\nb\\x1b[2J \\u202e \xe9"
