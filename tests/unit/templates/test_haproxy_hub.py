"""The way from JupyterHub's proxy to a server in a session, through a real HAProxy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from portal.core.apps.access import hub_key
from tests.unit.web.front import SESSION, Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

PREFIX, KEY = "/user/alice/", hub_key(SESSION)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One HAProxy for all tests here."""
    with running_front(tmp_path_factory.mktemp("front"), "ports") as running:
        yield running


@pytest.fixture
def server(front: Front) -> Iterator[str]:
    """A running server of alice's; returns its name at the gateway."""
    name = f"jupyterhub.{SESSION}.slipway"
    front.routes.add_path(PREFIX, KEY)
    front.routes.add(KEY, f"127.0.0.1@{front.gateway.server_port}@{name}")
    yield name
    front.routes.remove(KEY)
    front.routes.set_paths({})


def test_the_path_leads_to_the_session_with_the_hubs_cookies(front: Front, server: str) -> None:
    front.gateway.names.clear()
    cookie = "jupyterhub-session-id=abc; _xsrf=d"
    answer = front.hub("/user/alice/lab?reset", cookie=cookie, authorization="token x")
    assert (answer.status, answer.seen["who"]) == (200, "app")
    assert answer.seen["path"] == "/user/alice/lab?reset"
    assert answer.sent("cookie") == [cookie]
    assert answer.sent("authorization") == ["token x"]
    assert answer.sent("host") == ["hub.example.org"]
    assert front.gateway.names in ([server], [])  # none for a connection that was kept


def test_a_server_gets_no_login_of_the_portals(front: Front, server: str) -> None:
    """The portal may be at the same host, for which browsers send one set of cookies."""
    cookie = "__Host-slipway=a; jupyterhub-session-id=abc; slipway_app_x=b; _xsrf=d; slipway=e"
    answer = front.hub("/user/alice/lab", cookie=cookie, authorization="Bearer slipway_x")
    assert answer.sent("cookie") == ["jupyterhub-session-id=abc; _xsrf=d"]
    assert answer.sent("authorization") == []


@pytest.mark.parametrize(
    "path", ["/user/bob/", "/user/alice", "/", "/user/alic/", "/hub/user/alice/"]
)
def test_other_paths_lead_nowhere(front: Front, server: str, path: str) -> None:
    answer = front.hub(path)
    assert answer.status == 503
    assert "This server has ended, or is about to." in answer.text


def test_a_named_server_has_its_own_way(front: Front, server: str) -> None:
    other = hub_key("a" * 32)
    front.routes.set_paths({PREFIX: KEY, f"{PREFIX}b/": other})
    assert front.hub("/user/alice/b/lab").status == 503
    assert front.hub("/user/alice/lab").status == 200
    front.routes.add(other, f"127.0.0.1@{front.gateway.server_port}@jupyterhub.{'a' * 32}.slipway")
    front.routes.remove(other)
    assert front.hub("/user/alice/b/lab").status == 503


def test_without_a_route_it_is_not_running(front: Front) -> None:
    front.routes.add_path(PREFIX, KEY)
    assert front.hub("/user/alice/lab").status == 503
    front.routes.set_paths({})
    assert front.hub("/user/alice/lab").status == 503


def test_its_use_is_counted(front: Front, server: str) -> None:
    before = front.routes.traffic().get(server)
    front.hub("/user/alice/api/contents")
    after = front.routes.traffic()[server]
    assert after.requests == (before.requests if before else 0) + 1


def test_the_portal_and_apps_do_not_answer_there(front: Front, server: str) -> None:
    for path in ("/login", "/api/v1/sessions", "/runner/v1/x", "/.slipway/enter"):
        assert front.hub(path).status == 503


def test_the_path_is_unknown_at_the_portals_address(front: Front, server: str) -> None:
    answer = front.ask(f"localhost:{front.port}", "/user/alice/lab")
    assert answer.seen["who"] == "portal"


@pytest.mark.parametrize("path", ["/user/a b/", "/user/a\n/", "no", "/user/alice", "/;x/"])
def test_what_haproxy_would_misread_is_refused(front: Front, path: str) -> None:
    with pytest.raises(ValueError, match="misread"):
        front.routes.add_path(path, KEY)
