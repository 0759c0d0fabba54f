"""HTTP/2 can express what HTTP/1.1 cannot, and is translated by the proxy: this gains nothing.

In clear or over TLS, as the cluster is configured. Row "HTTP/2" of what was attacked and found
solid.
"""

from __future__ import annotations

import uuid
from urllib.parse import urlsplit

import pytest

from tests.attack.wire import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    Pairs,
    Received,
    block,
    exchange_h2,
    frame,
)
from tests.support.client import Api, Json, Visitor, http_session
from tests.support.cluster import Cluster

REFUSED = {400, 403, 404, 405, 413, 421, 501}


def _head(url: str, **changes: bytes | None) -> Pairs:
    """The pseudo headers of a plain request; None values are omitted."""
    parts = urlsplit(url)
    usual: dict[str, bytes | None] = {
        "method": b"GET",
        "scheme": parts.scheme.encode(),
        "path": parts.path.encode() or b"/",
        "authority": parts.netloc.encode(),
    }
    pairs = usual | changes
    return [(b":" + name.encode(), value) for name, value in pairs.items() if value is not None]


def _request(pairs: Pairs, body: bytes | None = None, stream: int = 1) -> bytes:
    ends = END_STREAM if body is None else 0
    data = frame(HEADERS, END_HEADERS | ends, stream, block(pairs))
    return data if body is None else data + frame(DATA, END_STREAM, stream, body)


def test_a_plain_request_succeeds(cluster: Cluster) -> None:
    """A precondition of the other tests here."""
    received = exchange_h2(cluster.url, _request(_head(f"{cluster.url}/login")))
    assert received.statuses == [200]
    assert b"csrf_token" in received.body


def _attempts(url: str, mark: str) -> dict[str, bytes]:
    """Frames of each attempt; no response may differ from HTTP/1.1."""
    login, hidden = (
        f"{url}/login",
        f" HTTP/1.1\r\nHost: localhost\r\n\r\nGET /static/{mark}".encode(),
    )
    post = _head(login, method=b"POST")
    return {
        "a line break in the path": _request(_head(login, path=b"/login" + hidden)),
        "a line break in the method": _request(
            _head(login, method=b"GET /" + hidden + b" HTTP/1.1\r\nX:")
        ),
        "a line break in a value": _request(
            [*_head(login), (b"x", b"a\r\nTransfer-Encoding: chunked\r\n\r\n")]
        ),
        "a line break in a name": _request(
            [*_head(login), (b"x: a\r\ntransfer-encoding", b"chunked")]
        ),
        "a line break in the authority": _request(
            _head(login, authority=b"localhost\r\nX-Slipway-Frontend: runners")
        ),
        "a colon in a name": _request([*_head(login), (b"x-slipway-frontend: runners", b"")]),
        "a NUL in a value": _request([*_head(login), (b"x", b"a\0b")]),
        "capital letters": _request([*_head(login), (b"Host", b"evil.example.org")]),
        "chunks": _request(
            [*post, (b"transfer-encoding", b"chunked")], b"0\r\n\r\nGET /static/x HTTP/1.1\r\n\r\n"
        ),
        "a length that is too small": _request(
            [*post, (b"content-length", b"0")], b"GET /static/x HTTP/1.1\r\n\r\n"
        ),
        "a length that is too big": _request([*post, (b"content-length", b"500")], b"x"),
        "two lengths": _request(
            [*post, (b"content-length", b"1"), (b"content-length", b"2")], b"xx"
        ),
        "a connection header": _request(
            [*_head(login), (b"connection", b"upgrade"), (b"upgrade", b"websocket")]
        ),
        "another host than the authority": _request(
            [*_head(login), (b"host", b"evil.example.org")]
        ),
        "an authority of nobody": _request(_head(login, authority=b"evil.example.org")),
        "two authorities": _request([*_head(login), (b":authority", b"evil.example.org")]),
        "no path": _request(_head(login, path=None)),
        "an empty path": _request(_head(login, path=b"")),
        "two paths": _request([*_head(login), (b":path", b"/static/x")]),
        "a pseudo header at the end": _request([(b"x", b"y"), *_head(login)]),
        "an unknown pseudo header": _request([*_head(login), (b":user", b"alice")]),
        "a tunnel": _request(_head(login, method=b"CONNECT", path=None, scheme=None)),
        "a WebSocket by CONNECT": _request(
            [*_head(login, method=b"CONNECT"), (b":protocol", b"websocket")], b""
        ),
        "a header that goes on and never ends": frame(HEADERS, 0, 1, block(_head(login)))
        + b"".join(
            frame(CONTINUATION, 0, 1, block([(b"x-%d" % n, b"y" * 200)])) for n in range(800)
        ),
        "the runners' side": _request(
            [
                *_head(f"{url}/runner/v1/sessions/x/usage", method=b"POST"),
                (b"x-slipway-frontend", b"runners"),
            ],
            b"{}",
        ),
        "a stream that the server should open": frame(
            HEADERS, END_HEADERS | END_STREAM, 2, block(_head(login))
        ),
    }


@pytest.mark.parametrize("case", _attempts("http://localhost:1", ""))
def test_an_attempt_is_reset_refused_or_a_single_request(cluster: Cluster, case: str) -> None:
    mark = uuid.uuid4().hex
    received = exchange_h2(cluster.url, _attempts(cluster.url, mark)[case])
    assert len(received.statuses) <= 1, received
    assert set(received.statuses) <= REFUSED | {200, 303}, received
    if received.statuses == [200]:  # a valid request for the page, and for no other
        assert received.body.count(b"csrf_token") == 1
    for _ in range(4):
        page = http_session().get(f"{cluster.url}/login", timeout=10)
        assert page.status_code == 200
        assert mark not in page.text


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """Alice's JupyterLab, opened by her."""
    return researcher.open(session["id"], "jupyterlab")


def _at_the_app(lab: Visitor, path: str, extra: Pairs, **changes: bytes | None) -> Received:
    return exchange_h2(lab.origin, _request([*_head(lab.origin + path, **changes), *extra]))


def test_cookie_crumbs_are_joined(lab: Visitor) -> None:
    name, value = lab.cookie_name.encode(), lab.cookie.encode()
    whole = [(b"cookie", b"a=1"), (b"cookie", name + b"=" + value), (b"cookie", b"b=2")]
    assert _at_the_app(lab, "/api/status", whole).statuses == [200]
    for crumbs in (
        [(b"cookie", name + b"="), (b"cookie", value)],
        [(b"cookie", name), (b"cookie", b"=" + value)],
        [(b"cookie", name + b"=" + value), (b"cookie", name + b"=x")],
        [(b"x-cookie", name + b"=" + value)],
        [],
    ):
        received = _at_the_app(lab, "/api/status", crumbs)
        # The last of two counts; a browser that also sends a valid one is asked to retry.
        assert received.statuses in ([401], [409]), (crumbs, received)
        assert b"started" not in received.body


def test_an_app_is_reached_by_its_own_name_only(cluster: Cluster, lab: Visitor) -> None:
    cookie = [(b"cookie", f"{lab.cookie_name}={lab.cookie}".encode())]
    portal = urlsplit(cluster.url).netloc.encode()
    for authority in (
        b"evil.example.org",
        b"x." + urlsplit(lab.origin).netloc.encode(),
        portal + b".evil.example.org",
    ):
        received = _at_the_app(lab, "/api/status", cookie, authority=authority)
        assert received.statuses in ([404], [421], [400], []), (authority, received)
        assert b"started" not in received.body


def test_other_origins_are_refused_as_in_http1(lab: Visitor) -> None:
    cookie = [(b"cookie", f"{lab.cookie_name}={lab.cookie}".encode())]
    foreign = [(b"origin", b"http://evil.example.org")]
    for method in (b"POST", b"PUT", b"DELETE", b"PATCH"):
        assert _at_the_app(lab, "/api/kernels", cookie + foreign, method=method).statuses == [403]
    upgrade = [(b":protocol", b"websocket")]
    head = _head(f"{lab.origin}/api/events/subscribe", method=b"CONNECT")
    received = exchange_h2(lab.origin, _request([*head, *upgrade, *cookie, *foreign], b""))
    assert 200 not in received.statuses
