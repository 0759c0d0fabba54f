"""Whom a request comes from: what JupyterHub's own proxy has seen, never what a client claims."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from portal.hub.clients import CLIENT, FRONT_END, client_address, client_headers
from tests.support.hub_requests import CLIENT_AT, HUB, NGINX, NODE, VICTIM, hub_request


@pytest.mark.parametrize("proxy", ["127.0.0.1", "::1", "::ffff:127.0.0.1", HUB, None])
def test_the_address_that_the_hubs_own_proxy_adds_counts(proxy: str | None) -> None:
    assert client_address(hub_request(proxy, CLIENT_AT)) == CLIENT_AT
    assert client_address(hub_request(proxy, f"{VICTIM},{CLIENT_AT}")) == CLIENT_AT
    assert client_address(hub_request(proxy, f"{VICTIM}, 127.0.0.1", CLIENT_AT)) == CLIENT_AT


@pytest.mark.parametrize(
    "claim", [{"X_Real_IP": VICTIM}, {"Forwarded": f"for={VICTIM}"}, {"X_Client_IP": VICTIM}]
)
def test_no_other_header_counts(claim: dict[str, str]) -> None:
    assert client_address(hub_request("127.0.0.1", CLIENT_AT, **claim)) == CLIENT_AT
    assert client_address(hub_request("127.0.0.1", **claim)) == ""
    assert client_address(hub_request(NODE, **claim)) == NODE


def test_whoever_connects_without_the_proxy_is_the_client() -> None:
    """Such as a program on a compute node, from where JupyterHub's port can be reached."""
    assert client_address(hub_request(NODE)) == NODE
    assert client_address(hub_request(NODE, VICTIM)) == NODE
    assert client_address(hub_request("::ffff:10.0.0.21", VICTIM)) == NODE


def test_a_proxy_before_the_proxy_is_believed_only_if_the_site_names_it() -> None:
    chain = f"{VICTIM}, {CLIENT_AT}, {NGINX}"
    assert client_address(hub_request("127.0.0.1", chain)) == NGINX
    assert client_address(hub_request("127.0.0.1", chain, trusted=[NGINX])) == CLIENT_AT
    mapped = f"{VICTIM}, {CLIENT_AT}, ::ffff:{NGINX}"
    assert (
        client_address(hub_request("127.0.0.1", mapped, trusted=[NGINX, "no address"])) == CLIENT_AT
    )
    # JupyterHub's proxy on another machine.
    assert (
        client_address(hub_request(NGINX, f"{VICTIM}, {CLIENT_AT}", trusted=[NGINX])) == CLIENT_AT
    )
    assert client_address(hub_request(NGINX, f"{VICTIM}, {CLIENT_AT}")) == NGINX


@pytest.mark.parametrize(
    "forwarded", ["", "unknown", f"{VICTIM}, undefined", f"{VICTIM},", "1.2.3", NGINX]
)
def test_a_proxy_that_names_nobody(forwarded: str) -> None:
    assert client_address(hub_request("127.0.0.1", forwarded, trusted=[NGINX])) == ""
    assert client_address(hub_request("127.0.0.1", trusted=[NGINX])) == ""


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("unknown, 192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_one_client_has_one_spelling(forwarded: str, address: str) -> None:
    assert client_address(hub_request("127.0.0.1", forwarded)) == address


def test_a_connection_that_has_ended_names_nobody_else() -> None:
    request = hub_request(HUB, VICTIM)
    request.connection.stream.socket = None  # type: ignore[union-attr]
    assert client_address(request) == HUB


class Shows(RequestHandler):
    """Whom tornado and we take for the client."""

    def get(self) -> None:
        """Tell both."""
        self.write({"tornado": self.request.remote_ip, "ours": client_address(self.request)})


def test_a_server_as_jupyterhub_makes_it_believes_what_we_do_not() -> None:
    """The headers of one request on a real connection, with JupyterHub's settings of tornado."""

    async def work() -> bytes:
        listener, port = bind_unused_port()
        server = HTTPServer(Application([("/", Shows)]), xheaders=True, trusted_downstream=[NGINX])
        server.add_sockets([listener])
        headers = {"X-Forwarded-For": f"{CLIENT_AT}, {NGINX}", "X-Real-IP": VICTIM}
        answer = await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/", headers=headers)
        server.stop()
        return answer.body

    expected = f'{{"tornado": "{VICTIM}", "ours": "{CLIENT_AT}"}}'
    assert asyncio.run(work()).decode() == expected


def test_a_client_is_named_only_with_proof(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    file = str(tmp_path / "token")
    assert client_headers(hub_request("127.0.0.1", CLIENT_AT), file) == {
        FRONT_END: "secret",
        CLIENT: CLIENT_AT,
    }
    assert client_headers(hub_request("127.0.0.1", CLIENT_AT), "") == {}
    assert client_headers(hub_request("127.0.0.1"), file) == {}
    with pytest.raises(FileNotFoundError):
        client_headers(hub_request("127.0.0.1", CLIENT_AT), str(tmp_path / "nowhere"))
