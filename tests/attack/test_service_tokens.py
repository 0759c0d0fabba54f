"""Service tokens: a service acts for the users that it was given, and for nobody else."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.support.client import LOOPBACK, SMALL, Api
from tests.support.cluster import Cluster

ACTING = "Slipway-User"
SLIPWAY = ("runuser", "--user", "slipway", "--", "/opt/venv/bin/slipway", "token")


@dataclass(frozen=True)
class Service:
    """A service's token, and its id."""

    secret: str
    id: str


def _made(cluster: Cluster, name: str, *options: str) -> Service:
    secret = cluster.run("portal", *SLIPWAY, "create", name, *options).strip()
    listed = cluster.run("portal", *SLIPWAY, "list").splitlines()
    return Service(secret, next(line.split()[0] for line in listed if f"  {name}  " in line))


@pytest.fixture(scope="module")
def service(cluster: Cluster) -> Iterator[Service]:
    """A service for alice; and for accounts that no service may act for."""
    made = _made(cluster, "attacked", "--users", "alice,daemon,nobody,slipway,admin,ghost")
    yield made
    cluster.run("portal", *SLIPWAY, "revoke", made.id)


@pytest.fixture(scope="module")
def api(cluster: Cluster, service: Service) -> Api:
    """A client with the service's token."""
    return Api(cluster, "", service.secret)


def test_no_token_is_made_for_root(cluster: Cluster) -> None:
    words = ("exec", "portal", "--", *SLIPWAY, "create", "for-root", "--users", "alice,root")
    done = cluster.attempt(*words)
    assert done.returncode == 2
    assert "'root' is not an account name" in done.stderr
    assert "for-root" not in cluster.run("portal", *SLIPWAY, "list")


def test_it_acts_for_alice(api: Api) -> None:
    """Otherwise the refusals below would show nothing."""
    assert api("GET", "/sessions", headers={ACTING: "alice"}).status_code == 200


@pytest.mark.parametrize(
    "user",
    [
        "root", "daemon", "nobody", "slipway", "ghost", "bob", "", "ALICE", "Alice",
        "alice,bob", "alice\tbob", "0", "1001", "+1001", "%61lice", "alice@login", "../alice",
        "-1", "*", "a" * 65, "al\u00efce".encode().decode("latin-1"), "'alice'", "alice;id",
        "$(id)", "alice --", "/alice",
    ],
)  # fmt: skip
def test_it_acts_for_nobody_else(user: str, api: Api) -> None:
    for method, path, body in (("GET", "/sessions", None), ("POST", "/sessions", SMALL)):
        refused = api(method, path, json=body, headers={ACTING: user.encode("latin-1")})
        assert refused.status_code == 403, (method, refused.status_code, refused.text)
        assert refused.json()["detail"]


def test_blanks_around_a_name_belong_to_http(api: Api) -> None:
    assert api("GET", "/sessions", headers={ACTING: "alice \t"}).status_code == 200


def test_two_names_are_not_the_better_one(cluster: Cluster, service: Service) -> None:
    parts = urlsplit(cluster.url)
    for names in (("alice", "bob"), ("bob", "alice"), ("alice", "root"), ("root", "alice")):
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                LOOPBACK, cluster.port, context=context
            )
        else:
            connection = http.client.HTTPConnection(LOOPBACK, cluster.port)
        connection.putrequest("GET", "/api/v1/me", skip_host=True)
        connection.putheader("Host", parts.netloc)
        connection.putheader("Authorization", f"Bearer {service.secret}")
        for name in names:
            connection.putheader(ACTING, name)
        connection.endheaders()
        assert connection.getresponse().status in (400, 401, 403), names
        connection.close()


def test_it_is_nobody_without_a_name(api: Api) -> None:
    for path in ("/sessions", "/me", "/admin/caps", "/journal", "/tokens"):
        assert api("GET", path).status_code in (401, 403), path


def test_it_never_administers(api: Api) -> None:
    for user in ("admin", "alice"):
        for method, path in (
            ("GET", "/journal"),
            ("GET", "/admin/caps"),
            ("PUT", "/admin/caps"),
            ("GET", "/tokens"),
            ("POST", "/tokens"),
            ("GET", "/jobs"),
            ("DELETE", "/jobs/1"),
        ):
            refused = api(method, path, json={}, headers={ACTING: user})
            assert refused.status_code in (401, 403, 404, 405, 422), (user, method, path)
            assert refused.status_code != 422 or path == "/tokens", (user, method, path)


def test_for_an_administrator_it_sees_only_that_users_sessions(
    api: Api, alice: Api, bob: Api
) -> None:
    session = bob.launch()["id"]
    for user in ("admin", "alice"):
        headers = {ACTING: user}
        assert api("GET", f"/sessions/{session}", headers=headers).status_code == 404
        assert api("DELETE", f"/sessions/{session}", headers=headers).status_code == 404
        listed = api("GET", "/sessions", headers=headers, params={"limit": 500}).json()
        assert {one["owner"] for one in listed["sessions"]} <= {user}


def test_a_users_own_token_acts_for_nobody(alice: Api, bob: Api) -> None:
    for api, user in ((bob, "alice"), (bob, "bob"), (alice, "bob"), (bob, "root")):
        refused = api("GET", "/sessions", headers={ACTING: user})
        assert refused.status_code in (401, 403), (user, refused.status_code)


def test_a_name_alone_opens_nothing(cluster: Cluster) -> None:
    stranger = Api(cluster, "")
    for headers in ({ACTING: "alice"}, {ACTING: "alice", "Authorization": "Bearer "}):
        assert stranger("GET", "/sessions", headers=headers).status_code == 401


def test_at_the_pages_the_name_means_nothing(cluster: Cluster, service: Service) -> None:
    http_client = Api(cluster, "", service.secret).http
    page = http_client.get(
        f"{cluster.url}/sessions", headers={ACTING: "alice"}, allow_redirects=False, timeout=30
    )
    assert page.status_code in (302, 303, 401, 403)


def test_a_revoked_one_acts_no_longer(cluster: Cluster) -> None:
    made = _made(cluster, "revoked", "--users", "alice")
    api = Api(cluster, "", made.secret)
    assert api("GET", "/sessions", headers={ACTING: "alice"}).status_code == 200
    cluster.run("portal", *SLIPWAY, "revoke", made.id)
    refused = api("GET", "/sessions", headers={ACTING: "alice"})
    assert refused.status_code == 401
    assert "revoked" in refused.json()["detail"]
    assert made.secret not in cluster.run("portal", *SLIPWAY, "list")
