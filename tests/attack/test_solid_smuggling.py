"""HTTP/1.1 at the portal: an ambiguous request is refused, or treated as one harmless request.

Row "HTTP/1.1 at the portal" of what was attacked and found solid.
"""

from __future__ import annotations

import uuid

import pytest

from tests.attack.wire import exchange, statuses
from tests.support.client import Api, http_session
from tests.support.cluster import Cluster, healthy
from tests.support.malformed_requests import ODD, PATHS, REFUSED

POST = b"POST /login HTTP/1.1\r\nHost: {host}\r\n"
GET = b"GET /login HTTP/1.1\r\nHost: {host}\r\n"
TYPE = b"Content-Type: application/x-www-form-urlencoded\r\n"
HIDDEN = b"GET /static/hidden-{mark} HTTP/1.1\r\nHost: {host}\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

TWO_IN_ONE = {
    "length and chunks": POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "chunks and length": POST + CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunked twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "identity": POST + b"Content-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n" + HIDDEN,
    "chunked by a tab": POST
    + b"Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "chunked by a vertical tab": POST
    + b"Transfer-Encoding:\x0bchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "chunked in a folded line": POST
    + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "chunked with a quote": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + HIDDEN,
    "chunked under another name": POST
    + b"Transfer_Encoding: chunked\r\nContent-Length: 0\r\n\r\n"
    + HIDDEN,
    "a blank before chunked": POST
    + b"Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "the same length twice": POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a list of lengths": POST + b"Content-Length: 0, 0\r\n\r\n" + HIDDEN,
    "a list of other lengths": POST + b"Content-Length: 0, 60\r\n\r\n" + HIDDEN,
    "a length with a sign": POST + b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "a length in hexadecimal": POST + b"Content-Length: 0x0\r\n\r\n" + HIDDEN,
    "a length that overflows": POST + b"Content-Length: 18446744073709551616\r\n\r\n" + HIDDEN,
    "an empty length": POST + b"Content-Length:\r\n\r\n" + HIDDEN,
    "a length with a point": POST + b"Content-Length: 0.0\r\n\r\n" + HIDDEN,
    "an extension of a chunk": POST + CHUNKED + b"\r\n0;a=b\nc\r\n\r\n" + HIDDEN,
    "a chunk that ends with a bare LF": POST + CHUNKED + b"\r\n1\nx\n0\n\n" + HIDDEN,
    "a huge chunk": POST + CHUNKED + b"\r\nfffffffffffffffff\r\n" + HIDDEN,
    "a chunk with a sign": POST + CHUNKED + b"\r\n-1\r\n\r\n" + HIDDEN,
    "a chunk with a blank before": POST + CHUNKED + b"\r\n 0\r\n\r\n" + HIDDEN,
    "lines that end with a bare LF": b"POST /login HTTP/1.1\nHost: {host}\nContent-Length: 0\n\n"
    + HIDDEN,
    "a bare CR before a header": GET[:-2]
    + b"\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + HIDDEN,
    "a GET with a body that is a request": GET + b"Content-Length: 5\r\n\r\nGET /" + HIDDEN,
    "an upgrade to h2c": GET
    + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    + b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    + HIDDEN,
    "an upgrade to a WebSocket that none is": GET
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\n\r\n"
    + HIDDEN,
    "HTTP/1.0 with chunks": b"POST /login HTTP/1.0\r\nHost: {host}\r\n"
    + CHUNKED
    + b"\r\n0\r\n\r\n"
    + HIDDEN,
    "HTTP/0.9": b"GET /login\r\n" + HIDDEN,
    "an absolute address": b"GET http://{host}/login HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    "the runners' side": b"POST /%72unner/v1/sessions/x/usage HTTP/1.1\r\nHost: {host}\r\n"
    b"X-Slipway-Frontend: runners\r\nContent-Length: 0\r\n\r\n",
    "the runners' side by two slashes": b"POST //runner/v1/sessions/x/usage HTTP/1.1\r\n"
    b"Host: {host}\r\nX_Slipway_Frontend: runners\r\nContent-Length: 0\r\n\r\n",
}
"""{host} is the portal's, {mark} a word unique to each attempt."""

HARMLESS = {
    200,
    301,
    302,
    303,
    400,
    401,
    403,
    404,
    405,
    408,
    411,
    413,
    414,
    417,
    421,
    422,
    431,
    501,
    505,
}
GAINED = (b"csrf_token", b'"username"')


def _attempt(cluster: Cluster, data: bytes) -> tuple[list[int], bytes, str]:
    mark = uuid.uuid4().hex
    host = cluster.url.partition("://")[2].encode()
    answer = exchange(cluster.url, data.replace(b"{host}", host).replace(b"{mark}", mark.encode()))
    return statuses(answer), answer, mark


@pytest.mark.parametrize("case", TWO_IN_ONE)
def test_a_hidden_request_gains_nothing_from_the_first(cluster: Cluster, case: str) -> None:
    found, _, mark = _attempt(cluster, TWO_IN_ONE[case])
    assert set(found) <= HARMLESS, found
    # Where both servers agree on the end of the first, the second is a separate request of the same
    # client on the same connection: it gains nothing, and gets no other client's response.
    assert len(found) <= 2, found
    if len(found) == 2 and found[0] != 400:
        assert found[1] in (400, 404), found
    assert "runner" not in case or found == [404]
    # The next client, on connections that the proxy reuses, gets its own response.
    for _ in range(4):
        page = http_session().get(f"{cluster.url}/login", timeout=10)
        assert page.status_code == 200
        assert mark not in page.text
        assert "csrf_token" in page.text


@pytest.mark.parametrize("case", REFUSED)
def test_requests_that_no_server_may_see_are_refused(cluster: Cluster, case: str) -> None:
    found, answer, _ = _attempt(cluster, REFUSED[case])
    assert not answer or found, answer[:200]
    assert all(400 <= status < 500 or status in (501, 505) for status in found), found


@pytest.mark.parametrize("case", ODD)
def test_odd_requests_are_one_request_at_most(cluster: Cluster, case: str) -> None:
    found, _, _ = _attempt(cluster, ODD[case])
    assert len(found) <= 1
    assert set(found) <= HARMLESS


@pytest.mark.parametrize("path", PATHS)
def test_no_path_bypasses_the_login(cluster: Cluster, alice: Api, path: str) -> None:
    request = b"GET " + path.encode() + b" HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    found, answer, _ = _attempt(cluster, request)
    assert len(found) == 1
    assert found[0] in HARMLESS - {200}, found
    assert (
        b"X-Injected"
        not in answer.partition(b"\r\n\r\n")[0].replace(b"%20", b" ").split(b"Location")[0]
    )
    assert healthy(cluster)
