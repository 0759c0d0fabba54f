"""Bob at JupyterHub and the portal: nothing of alice's server opens, whatever he claims to be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from requests.cookies import get_cookie_header
from requests.models import Request

from tests.slurm.conftest import MakeHub
from tests.support.apps import Kernel
from tests.support.client import SMALL, Api
from tests.support.cluster import Cluster
from tests.support.hubs import (
    TINY_SERVER,
    HubApi,
    HubLogin,
    ServerVisitor,
    path_of,
    send_to_hub,
    session_at,
    sessions_at,
)

FILE = "/api/contents/canary.txt"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def hers(make_hub: MakeHub) -> Iterator[HubApi]:
    """Alice, with a running server."""
    made = make_hub("alice")
    made.clean()
    made.running("", TINY_SERVER)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def canary(hers: HubApi) -> str:
    """A word in a file of her server."""
    word = f"canary-{uuid.uuid4().hex}"
    kernel = Kernel(hers.visit())
    kernel.run(f"open('canary.txt', 'w').write({word!r})")
    kernel.close()
    assert word in hers.visit().get(FILE).text, "alice herself cannot read it"
    return word


@pytest.fixture(scope="module")
def his(make_hub: MakeHub, hers: HubApi) -> Iterator[HubApi]:
    """Bob, with a running server of his own."""
    made = make_hub("bob")
    made.clean()
    made.running("", TINY_SERVER)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def his_cookies(his: HubApi, hub_logins: dict[str, HubLogin]) -> str:
    """The cookies of bob's browser, which has visited his server and tried hers."""
    browser = hub_logins["bob"]
    assert browser.get("/user/bob/lab").status_code == 200
    browser.get("/user/alice/lab")
    everywhere = [(c.name, c.value) for c in browser.http.cookies]
    return "; ".join(f"{name}={value}" for name, value in everywhere)


# Her server, by every spelling of its address


SPELLINGS = [
    "/user/alice{file}",
    "/user/%61lice{file}",
    "/user/%61%6C%69%63%65{file}",
    "/user/alic%2565{file}",
    "/user/bob/../alice{file}",
    "/user/bob/%2e%2e/alice{file}",
    "/user/bob/..%2falice{file}",
    "/user/bob/..%5calice{file}",
    "/user/bob/..;/alice{file}",
    "/user/bob//user/alice{file}",
    "/user/bob/.%00./alice{file}",
    "//user/alice{file}",
    "/user//alice{file}",
    "/./user/alice{file}",
    "/hub/../user/alice{file}",
    "/USER/alice{file}",
    "/user/ALICE{file}",
    "/user/alice/{file}",
    "/user/alice;bob{file}",
    "/user/al%C3%ADce{file}",
    "/user/%EF%BD%81lice{file}",
    "http://portal:8090/user/alice{file}",
    "http://localhost/user/alice{file}",
    "/services/../user/alice{file}",
]


def _credentials(his: HubApi, his_cookies: str) -> dict[str, dict[str, str]]:
    return {
        "nobody": {},
        "his token": {"Authorization": f"token {his.token}"},
        "his cookies": {"Cookie": his_cookies},
        "made up": {"Authorization": f"token {uuid.uuid4().hex}"},
    }


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_her_path_opens_her_server(
    spelling: str, his: HubApi, his_cookies: str, canary: str
) -> None:
    target = spelling.format(file=FILE)
    for who, headers in _credentials(his, his_cookies).items():
        said = send_to_hub(his, target, headers)
        assert canary not in said.text, (who, said)
        assert said.status in {*range(300, 500), 503}, (who, said)


CLAIMS: list[dict[str, str]] = [
    {"Host": "evil.example.org"},
    {"Host": "portal:8090"},
    {"Host": "alice"},
    {"X-Forwarded-Host": "portal", "X-Forwarded-Proto": "https"},
    {"X-Forwarded-User": "alice", "Remote-User": "alice", "X-Remote-User": "alice"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"},
    {"X-Forwarded-Prefix": "/user/alice/", "X-Original-URL": f"/user/alice{FILE}"},
    {"X-Rewrite-URL": f"/user/alice{FILE}", "X-Original-URI": f"/user/alice{FILE}"},
    {"Slipway-User": "alice", "X-Slipway-User": "alice"},
    {"Forwarded": "for=127.0.0.1;host=portal;proto=https"},
    {"X-HTTP-Method-Override": "DELETE"},
]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("user", ["alice", "bob"])
def test_no_header_makes_him_alice(
    claim: dict[str, str], user: str, his: HubApi, his_cookies: str, canary: str
) -> None:
    for headers in _credentials(his, his_cookies).values():
        said = send_to_hub(his, f"/user/{user}{FILE}", claim | headers)
        assert canary not in said.text
        place = said.headers.get("Location", "/")
        assert place.startswith("/") or urlsplit(place).hostname != "evil.example.org", said


def test_his_browser_is_refused_at_her_server_and_pages(
    his: HubApi, hub_logins: dict[str, HubLogin], canary: str
) -> None:
    browser = hub_logins["bob"]
    for path in ("lab", "tree", "api/status", "api/contents/canary.txt", "files/canary.txt"):
        answer = browser.get(f"/user/alice/{path}")
        assert answer.status_code in (403, 404), (path, answer.url)
        assert canary not in answer.text
    for path in ("/hub/spawn/alice", "/hub/spawn-pending/alice", "/hub/user/alice/"):
        answer = browser.get(path)
        assert answer.status_code in (403, 404), (path, answer.status_code, answer.url)


def test_his_token_is_refused_at_her_servers_and_tokens(his: HubApi, hers: HubApi) -> None:
    for method, path in (
        ("GET", "/users/alice"),
        ("DELETE", "/users/alice/server"),
        ("POST", "/users/alice/servers/more"),
        ("GET", "/users/alice/server/progress"),
        ("GET", "/users/alice/tokens"),
        ("POST", "/users/alice/tokens"),
        ("DELETE", "/users/alice"),
        ("GET", "/users"),
        ("GET", "/proxy"),
    ):
        answer = his(method, path, json={})
        assert answer.status_code in (403, 404), (method, path, answer.text)
    nobody = his("GET", "/users/alice").json()["message"]
    assert nobody == his("GET", "/users/nobody-at-all").json()["message"]
    assert hers.servers()[""]["ready"]


def test_her_websocket_is_not_opened(his: HubApi, canary: str) -> None:
    opening = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    opening |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for token in ({}, {"Authorization": f"token {his.token}"}):
        target = f"/user/alice/terminals/websocket/1?token={his.token}"
        said = send_to_hub(his, target, opening | token)
        assert said.status in (302, 403, 404), said


# The portal's side: whose path is whose


PREFIXES = [
    "/user/alice/",
    "/user/alice/second/",
    "/user/%61lice/",
    "/user/bob/../alice/",
    "/user/bob/%2e%2e/",
    "/user/bob/../",
    "/user/bob/./",
    "/user/bob/.%2e/",
    "/user/bob//",
    "//user/alice/",
    "/user//alice/",
    "/USER/alice/",
    "/user/ALICE/",
    "/User/bob/",
    "/user/bob",
    "/user/bob/x/../../alice/",
    "/user/bob/x/y/",
    "/user/bob/%2Falice/",
    "/user/bob/..%2Falice/",
    "/user/b\u043eb/",
    "/user/\uff41lice/",
    "/user/bob/\n/user/alice/",
    "/user/bob/ /user/alice/",
    "/user/bob@/",
    "/user/",
    "/",
    "",
    "/hub/",
    "/hub/user/alice/",
    "/services/x/",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_he_launches_nothing_at_another_path(prefix: str, bob: Api, hers: HubApi) -> None:
    refused = bob("POST", "/sessions", json=SMALL | {"hub": {"prefix": prefix, "env": {}}})
    assert refused.status_code == 422, refused.text
    assert [error["field"] for error in refused.json()["errors"]] == ["hub.prefix"]


def test_her_session_is_as_if_it_did_not_exist(
    bob: Api, researcher: Api, his: HubApi, canary: str
) -> None:
    session = session_at(researcher, path_of("alice"))
    assert bob.list(hub=path_of("alice")) == []
    missing = bob("GET", f"/sessions/{uuid.uuid4().hex}")
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/log"),
        ("POST", "/apps/jupyterhub"),
        ("POST", "/extend"),
    ):
        answer = bob(method, f"/sessions/{session['id']}{path}")
        assert answer.status_code == 404, (method, path, answer.text)
        assert answer.json()["detail"] == missing.json()["detail"]


def test_variables_that_name_her_path_lead_nowhere(
    bob: Api, his: HubApi, hers: HubApi, canary: str, cluster: Cluster
) -> None:
    """The route is made from the checked path, whatever the variables say."""
    env = {"JUPYTERHUB_SERVICE_PREFIX": "/user/alice/", "JUPYTERHUB_USER": "alice"}
    before = cluster.run("portal", "cat", "/run/slipway/hub.map")
    hub = {"prefix": "/user/bob/fake/", "env": env}
    body = {
        "environment": "python",
        "version": "3.13",
        "resources": TINY_SERVER["resources"],
        "hub": hub,
    }
    session = bob.launch(**body)
    bob.wait_state(session["id"], "RUNNING", "FAILED")
    routes = cluster.run("portal", "cat", "/run/slipway/hub.map")
    assert [line for line in routes.splitlines() if "/user/alice/" in line] == [
        line for line in before.splitlines() if "/user/alice/" in line
    ]
    assert canary in hers.visit().get(FILE).text
    assert canary not in ServerVisitor(his, user="alice").get(FILE).text


def test_the_cookies_of_his_browser_are_really_his(
    his: HubApi, hub_logins: dict[str, HubLogin], his_cookies: str
) -> None:
    """Otherwise the refusals above would show nothing."""
    browser = hub_logins["bob"]
    request = Request("GET", f"{his.url}/user/bob/api/contents").prepare()
    cookies = get_cookie_header(browser.http.cookies, request)  # type: ignore[no-untyped-call]
    assert send_to_hub(his, "/user/bob/api/contents", {"Cookie": cookies}).status == 200
    token = {"Authorization": f"token {his.token}"}
    assert send_to_hub(his, "/user/bob/api/contents", token).status == 200


def test_her_servers_are_all_that_was_started(researcher: Api, hers: HubApi) -> None:
    live = sessions_at(researcher, path_of("alice"), state="running")
    assert [session["state"] for session in live] == ["RUNNING"]
    assert list(hers.servers()) == [""]
