"""One question has one deadline and one bound of size, however the answer comes."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from portal.adapters.oidc.client import BearerAuth, ProviderClient, ResponseError
from tests.support.openid_provider import OK, Answer, OpenIdServer, raw, slowly

SECONDS = 1.0
IN_TIME = 6.0
"""For an answer that is due after a second, on a busy machine; in pieces it would take 30."""
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SLOW = {
    "silent": slowly(b"", b"", 1),
    "status line": slowly(b"HTTP/1.0 ", b"2", 0.3),
    "headers": slowly(b"HTTP/1.0 200 OK\r\n", b"A: b\r\n", 0.3),
    "100 Continue": slowly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.3),
    "body": slowly(OK + b"{", b" ", 0.3),
    "chunks": slowly(CHUNKED, b"1\r\n \r\n", 0.3),
    "announced": slowly(b"HTTP/1.0 200 OK\r\nContent-Length: 999\r\n\r\n{", b" ", 0.3),
}


@pytest.fixture
def server() -> Iterator[OpenIdServer]:
    """A provider."""
    with OpenIdServer(lambda: datetime.now(UTC)) as made:
        yield made


def refusal(client: ProviderClient, url: str) -> tuple[str, float]:
    """Why there is no answer, and after how many seconds."""
    begun = time.monotonic()
    with pytest.raises(ResponseError) as error:
        client.ask("GET", url, SECONDS)
    return str(error.value), time.monotonic() - begun


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_an_answer_in_pieces_has_one_deadline(server: OpenIdServer, answer: Answer) -> None:
    server.answers["/x"] = answer
    assert refusal(ProviderClient(""), server.issuer + "/x")[1] < IN_TIME


def test_a_server_without_an_answer_to_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        assert refusal(ProviderClient(""), url)[1] < IN_TIME


def test_a_proxy_of_the_site_is_used_and_has_the_same_deadline(
    server: OpenIdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.issuer)
    monkeypatch.setenv("no_proxy", "")
    server.answers["/x"] = slowly(b"HTTP/1.0 200 OK\r\n", b"A: b\r\n", 0.3)
    assert refusal(ProviderClient(""), "http://login.example.org/x")[1] < IN_TIME
    assert server.asked == ["/x"]


@pytest.mark.parametrize("head", [OK, b"HTTP/1.0 302 Found\r\nLocation: /y\r\n\r\n"])
def test_an_answer_without_end_is_not_read(server: OpenIdServer, head: bytes) -> None:
    server.answers["/x"] = slowly(head, b" " * (1 << 20), 0)
    assert "more than 1048576 bytes" in refusal(ProviderClient(""), server.issuer + "/x")[0]
    assert server.sent < 64 << 20


def test_nothing_is_decompressed(server: OpenIdServer) -> None:
    head = b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    server.answers["/x"] = raw(head + gzip.compress(b"{}"))
    assert "status 200" in refusal(ProviderClient(""), server.issuer + "/x")[0]


def test_no_redirect_is_followed(server: OpenIdServer) -> None:
    location = f"Location: {server.issuer}/y\r\n\r\n{{}}"
    server.answers["/x"] = raw(b"HTTP/1.0 302 Found\r\n" + location.encode())
    assert ProviderClient("").ask("GET", server.issuer + "/x", SECONDS).status == 302
    assert server.asked == ["/x"]


def test_silence_is_remembered(server: OpenIdServer) -> None:
    client = ProviderClient("")
    server.answers["/x"] = server.answers["/y"] = slowly(b"", b"", 1)
    client_url, other = server.issuer + "/x", server.issuer + "/y"
    assert "did not answer" not in refusal(client, client_url)[0]
    assert "did not answer less than 10 s ago" in refusal(client, client_url)[0]
    assert server.asked == ["/x"]
    assert "did not answer" not in refusal(client, other)[0], "another address"


def test_what_fails_at_once_is_asked_again(server: OpenIdServer) -> None:
    """Or a stranger who makes the provider close one connection locks everybody out."""
    client = ProviderClient("")
    server.answers["/x"] = raw(b"")
    for _ in range(2):
        refusal(client, server.issuer + "/x")
    assert server.asked == ["/x"] * 2


def test_credentials_are_the_portals_and_not_of_a_netrc_file(
    server: OpenIdServer, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("home") / "netrc"
    file.write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(file))
    server.access_tokens["t"] = {"sub": "u1"}
    url = server.issuer + "/userinfo"
    answer = ProviderClient("").ask("GET", url, SECONDS, auth=BearerAuth("t"))
    assert answer.content == {"sub": "u1"}
