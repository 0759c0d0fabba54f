"""Denial of service without a login: slow, endless, ambiguous and too many requests."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from tests.attack.raw import Answer, alive, head, held, listen, open_connection, send
from tests.support.client import SMALL, Api, http_session
from tests.support.cluster import Cluster, wait_for

USUAL = 3.0
"""Maximum seconds for another user's page meanwhile: whoever has to wait for others waits for ten
and more, and four clusters on two cores delay single requests by a second."""
SLOW = "Content-Length: 1000"
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
MEGABYTE = 1 << 20


def _longest_wait(cluster: Cluster, api: Api, seconds: float = 3.0) -> float:
    """The longest duration of an anonymous page, the health check and a user's list meanwhile."""
    longest, deadline = 0.0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for path in ("/login", "/healthz"):
            begun = time.monotonic()
            try:
                with http_session() as fresh:
                    assert fresh.get(cluster.url + path, timeout=4).status_code == 200
            except requests.Timeout:
                return float("inf")
            longest = max(longest, time.monotonic() - begun)
        begun = time.monotonic()
        try:
            assert api("GET", "/sessions", timeout=4).status_code == 200
        except requests.Timeout:
            return float("inf")
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.1)
    return longest


@pytest.fixture
def api(alice: Api) -> Iterator[Api]:
    """A user who works with the portal meanwhile."""
    yield alice
    wait_for("a quick answer", lambda: _longest_wait(alice.cluster, alice, 0.1) < USUAL, 60)


@pytest.mark.parametrize(
    ("line", "headers", "sent"),
    [
        ("POST /login", [FORM, SLOW], b"us"),
        ("POST /api/v1/tokens", [JSON, SLOW], b'{"'),
        ("POST /sessions/end", [FORM, SLOW, "Cookie: slipway=made-up"], b"ids=1"),
        ("POST /api/v1/sessions", [JSON, SLOW, "Authorization: Bearer made-up"], b"{"),
        ("POST /login", [FORM, "Transfer-Encoding: chunked"], b"4\r\nuser\r\n"),
        ("PUT /nothing/here", [SLOW], b""),
        # More parallel connections than HAProxy accepts, then silence.
        ("POST /login", [FORM, f"Content-Length: {MEGABYTE}"], b"u" * 80_000),
        (
            "POST /api/v1/sessions",
            [JSON, f"Content-Length: {MEGABYTE - 1}", "Authorization: Bearer made-up"],
            b" " * 80_000,
        ),
    ],
    ids=["login", "tokens", "form", "api", "chunks", "nowhere", "80 KB login", "80 KB api"],
)
def test_slow_bodies_delay_no_other_user(
    cluster: Cluster, api: Api, line: str, headers: list[str], sent: bytes
) -> None:
    """H4, E4: 24 bodies that never end; gunicorn has 16 threads."""
    with held(cluster, 24, head(cluster, line, *headers), sent):
        assert _longest_wait(cluster, api) < USUAL


def test_slow_bodies_are_cut_off(cluster: Cluster) -> None:
    """H4, E4: sending a byte now and then does not extend the limit; the response says why."""
    start = head(cluster, "POST /api/v1/tokens", JSON, SLOW)
    answer = send(cluster, start, *[b" "] * 14, pause=1.0)
    assert answer.status == 408, answer
    assert answer.problem["status"] == 408
    assert answer.seconds < 16


def test_many_idle_connections_and_slow_bodies(cluster: Cluster, api: Api) -> None:
    """H4: 500 idle connections, 50 slow heads and 24 slow bodies at once."""
    with ExitStack() as stack:
        stack.enter_context(held(cluster, 500))
        stack.enter_context(held(cluster, 50, head(cluster, "GET /login")[:-2]))
        slow = head(cluster, "POST /login", FORM, SLOW)
        stack.enter_context(held(cluster, 24, slow, b"user"))
        assert _longest_wait(cluster, api) < USUAL


def test_slow_readers_delay_no_other_user(cluster: Cluster, api: Api) -> None:
    """H4: 24 connections request as much as they can, and read nothing."""
    question = head(cluster, "GET /login") + head(cluster, "GET /static/style.css")
    with held(cluster, 24, question * 20):
        assert _longest_wait(cluster, api) < USUAL


def test_one_address_has_a_share_of_the_connections(cluster: Cluster) -> None:
    """L11: a single address cannot even use up the portal's own connections."""
    most, hard = 4300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    with held(cluster, most, bare=True) as connections:  # quickly, before the first ones are closed
        time.sleep(1)
        # web.connections_per_address, and half of the rest of the portal's, for people.
        assert len(alive(connections)) <= (2000 + 0.8 * 8000) / 2
        # From another address it still responds; `-H`: the name by which the container knows
        # itself.
        line = "curl -sk -o /dev/null -w '%{http_code} %{time_total}' -m 5 "
        where = cluster.url.replace("localhost:" + str(cluster.port), "127.0.0.1:8080")
        result = cluster.shell("portal", f"{line} {where}/healthz").split()
        assert result[0] == "200"
        assert float(result[1]) < USUAL


def _launched_since(alice: Api, before: list[str]) -> list[str]:
    """Sessions launched by mistake; they end with the test."""
    made = [row["id"] for row in alice.list() if row["id"] not in before]
    alice.launched += made
    return made


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_long_bodies_are_refused_completely(cluster: Cluster, alice: Api, chunked: bool) -> None:
    """52: a 2 MB body that begins like a valid one is not truncated to a valid one."""
    before = [row["id"] for row in alice.list()]
    json = requests.Request("POST", "http://x/", json=SMALL).prepare().body
    assert isinstance(json, bytes)
    body = json + b" " * (2 * MEGABYTE) + b"{{{"
    login = f"Authorization: {alice.http.headers['Authorization']!s}"
    if chunked:
        pieces = [body[at : at + 65536] for at in range(0, len(body), 65536)]
        data = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]
        start = head(cluster, "POST /api/v1/sessions", JSON, login, "Transfer-Encoding: chunked")
    else:
        data = [body]
        length = f"Content-Length: {len(body)}"
        start = head(cluster, "POST /api/v1/sessions", JSON, login, length)
    answer = send(cluster, start, *data)
    assert not _launched_since(alice, before), answer
    assert answer.status == 413, answer
    assert answer.problem["status"] == 413
    assert answer.seconds < 5


def test_small_chunked_bodies_are_accepted(cluster: Cluster, alice: Api) -> None:
    """52: small chunked bodies are read completely."""
    login = f"Authorization: {alice.http.headers['Authorization']!s}"
    start = head(cluster, "POST /api/v1/sessions", JSON, login, "Transfer-Encoding: chunked")
    answer = send(cluster, start, b'7\r\n{"cpus"\r\n', b"4\r\n: 1}\r\n", b"0\r\n\r\n", pause=0.2)
    assert answer.status == 422, answer  # read completely, and understood


def test_bodies_without_a_login_are_not_read(cluster: Cluster) -> None:
    """H4: without a login the response is the redirect to the login, whatever the form contains."""
    body = b"=nameless&" * 1000
    start = head(cluster, "POST /sessions/end", FORM, f"Content-Length: {len(body)}")
    answer = send(cluster, start, body)
    assert answer.status == 303, answer
    assert b"/login" in answer.data


def test_long_callbacks_are_refused_immediately(cluster: Cluster) -> None:
    """68: 10 MB to the runners' port, by length and in chunks: refused without a hang."""
    for option in ("", "-H 'Transfer-Encoding: chunked'"):
        result = cluster.shell(
            "login",
            "head -c 10000000 /dev/zero | curl -sk -m 20 -o /dev/null -w '%{http_code} "
            f"%{{time_total}}' -X POST {option} -H 'Authorization: Bearer x' --data-binary @- "
            f"https://portal:8443/runner/v1/sessions/{'0' * 32}/usage",
            user="bob",
        ).split()
        assert result[0] == "413", (option, result)
        assert float(result[1]) < 5


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("two lengths", "POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n"
         "Content-Length: 6\r\n\r\nhello"),
        ("sixteen hosts", "GET /login HTTP/1.1\r\n" + "".join(
            f"Host: h{number}\r\n" for number in range(16)) + "\r\n"),
        ("a length that is none", "POST /login HTTP/1.1\r\nHost: {host}\r\n"
         "Content-Length: +5\r\n\r\nhello"),
        ("an unknown coding", "POST /login HTTP/1.1\r\nHost: {host}\r\n"
         "Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n"),
    ],
)  # fmt: skip
def test_ambiguous_requests_are_refused(cluster: Cluster, name: str, request_: str) -> None:
    """54: requests that two parsers could read differently."""
    host = cluster.url.partition("://")[2]
    answer = send(cluster, request_.replace("{host}", host).encode())
    assert 400 <= answer.status < 500, (name, answer)
    assert answer.answers == 1


@pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["CRLF", "bare LF"])
def test_chunks_and_a_length_are_one_request(cluster: Cluster, end: str) -> None:
    """54: RFC 9112 lets a server use the chunks; nothing after them may count as a request."""
    host = cluster.url.partition("://")[2]
    hidden = f"GET /healthz HTTP/1.1{end}Host: {host}{end}{end}"
    lines = ["POST /login HTTP/1.1", f"Host: {host}", FORM, "Content-Length: 4",
             "Transfer-Encoding: chunked", "", "0", "", hidden]  # fmt: skip
    with open_connection(cluster) as connection:
        connection.sendall(end.join(lines).encode())
        answer = listen(connection, 5)
    assert answer.answers == 1, answer
    assert answer.ended, "the connection must not be reused"
    assert b"ok\n" not in answer.data


def _long(cluster: Cluster, path: str, what: str) -> Answer:
    query = f"?q={'x' * 5000}" if what == "query" else ""
    more = [f"X-Long: {'x' * 20000}"] if what == "header" else []
    return send(cluster, head(cluster, f"GET {path}{query}", *more))


@pytest.mark.parametrize(("what", "status"), [("query", 414), ("header", 431)])
def test_long_urls_and_headers_get_the_portals_error_response(
    cluster: Cluster, what: str, status: int
) -> None:
    """E34: a problem document on the API, a plain explanation on a page."""
    problem = _long(cluster, "/api/v1/sessions", what)
    assert problem.status == status, problem
    assert problem.problem["status"] == status
    page = _long(cluster, "/login", what)
    assert page.status == status, page
    assert b"Slipway" in page.data
    assert b"<p>" in page.data
