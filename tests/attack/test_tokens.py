"""M5: tokens and logins can be revoked, have a last day, and do not outlive their account."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.attack.throwaway import MACHINES, Account, throwaway
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Browser, Json, Visitor
from tests.support.cluster import Cluster, in_database, wait_for

SECONDS = 60
"""A removed or locked account loses access within this time."""
TERMINAL: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def more(alice: Api) -> Iterator[Api]:
    """Alice with a token of her own for this test."""
    made = alice.ask("POST", "/tokens", 201, json={"name": "for a test", "days": 1})
    found = Api(alice.cluster, "alice", made["token"])
    yield found
    alice("DELETE", f"/tokens/{made['id']}")


def mine(api: Api) -> dict[str, Json]:
    """The user's tokens by their names."""
    return {token["name"]: token for token in api.ask("GET", "/tokens")["tokens"]}


def is_closed(stream: object) -> bool:
    """Whether the server closed an open WebSocket, after what it sent before."""
    try:
        for _ in range(20):
            stream.recv(timeout=1)  # type: ignore[attr-defined]
    except TimeoutError:
        return False
    except (ConnectionClosed, OSError):
        return True
    return False


def has_lost_access(visitor: Visitor) -> bool:
    """Whether the app is closed for a browser that had access."""
    try:
        visitor.websocket("/ws", "tty").close()
    except InvalidStatus:
        return True
    return False


def test_m5_tokens_are_listed_without_their_secrets_and_revoked_alone(
    alice: Api, more: Api
) -> None:
    """M5: GET and DELETE /tokens were 405."""
    secret = str(more.http.headers["Authorization"]).split()[1]
    answer = alice("GET", "/tokens")
    assert answer.status_code == 200
    assert secret not in answer.text
    listed = mine(alice)["for a test"]
    scopes = ["read", "write", "files:read", "files:write"]
    assert (listed["scopes"], listed["current"]) == (scopes, False)
    assert alice("DELETE", f"/tokens/{listed['id']}").status_code == 204
    assert alice("DELETE", f"/tokens/{listed['id']}").status_code == 404
    assert more("GET", "/me").status_code == 401
    assert alice("GET", "/me").status_code == 200


def test_m5_other_users_cannot_see_or_revoke_a_token(alice: Api, bob: Api, more: Api) -> None:
    """M5: knowing a token's id is not enough."""
    identifier = mine(alice)["for a test"]["id"]
    assert bob("DELETE", f"/tokens/{identifier}").status_code == 404
    assert identifier not in bob("GET", "/tokens").text
    for method, path in (
        ("GET", "/admin/people"),
        ("GET", "/admin/people/alice/logins"),
        ("DELETE", "/admin/people/alice/logins"),
        ("DELETE", f"/admin/people/alice/logins/{identifier}"),
    ):
        assert bob(method, path).status_code == 404
    assert more("GET", "/me").status_code == 200


def test_m5_a_token_cannot_exceed_its_own_rights(alice: Api, admin: Api) -> None:
    """M5: a stolen read-only token can create and revoke nothing; an ordinary one is not admin."""
    made = alice.ask("POST", "/tokens", 201, json={"name": "look", "scopes": ["read"], "days": 1})
    reader = Api(alice.cluster, "alice", made["token"])
    try:
        assert reader("GET", "/tokens").status_code == 200
        assert reader("POST", "/tokens", json={"name": "x"}).status_code == 403
        assert reader("DELETE", "/tokens").status_code == 403
        assert reader("DELETE", f"/tokens/{made['id']}").status_code == 403
    finally:
        alice("DELETE", f"/tokens/{made['id']}")
    body = {"name": "plain", "scopes": ["read", "write"], "days": 1}
    made = admin.ask("POST", "/tokens", 201, json=body)
    plain = Api(admin.cluster, "admin", made["token"])
    try:
        assert plain("GET", "/journal").status_code == 404
        wider = plain("POST", "/tokens", json={"name": "x", "scopes": ["read", "admin"]})
        assert (wider.status_code, wider.json()["errors"][0]["field"]) == (422, "scopes")
        longer = plain.ask("POST", "/tokens", 201, json={"name": "longer", "days": 90})
        assert longer["expires"] == made["expires"]
    finally:
        for token in mine(admin).values():
            if token["name"] in ("plain", "longer"):
                admin("DELETE", f"/tokens/{token['id']}")


def test_m5_revoking_a_token_closes_the_apps_it_opened(alice: Api, more: Api) -> None:
    """M5: neither logging out nor anything else revoked tokens."""
    session = alice.running(**TERMINAL)["id"]
    kept, shut = alice.open(session, "terminal"), more.open(session, "terminal")
    streams = [visitor.websocket("/ws", "tty") for visitor in (kept, shut)]
    alice("DELETE", f"/tokens/{mine(alice)['for a test']['id']}")
    assert has_lost_access(shut)
    wait_for("the stream is cut", lambda: is_closed(streams[1]), 10)
    assert not has_lost_access(kept)
    assert not is_closed(streams[0])
    streams[0].close()


def test_m5_log_out_everywhere(cluster: Cluster, make_api: MakeApi) -> None:
    """M5: a browser's login could be ended from that browser only."""
    with throwaway(cluster, "login") as account:
        browsers = [_browser(cluster, account) for _ in range(2)]
        token = Api(cluster, account.name, account.token())
        browsers[0].post("/account/log-out-everywhere")
        for browser in browsers:
            assert browser.get("/sessions").url.partition("?")[0].endswith("/login")
        assert token("GET", "/me").status_code == 200
        again = _browser(cluster, account)
        assert (
            make_api("admin")("DELETE", f"/admin/people/{account.name}/logins").status_code == 204
        )
        assert again.get("/sessions").url.partition("?")[0].endswith("/login")
        assert token("GET", "/me").status_code == 401


def _browser(cluster: Cluster, account: Account) -> Browser:
    browser = Browser.__new__(Browser)
    browser.cluster, browser.http = cluster, Api(cluster, "").http
    browser.post("/login", {"username": account.name, "password": account.password})
    assert browser.get("/sessions").url.endswith("/sessions")
    return browser


def test_m5_a_login_has_a_last_day(cluster: Cluster) -> None:
    """M5: a browser's login that was used never expired."""
    with throwaway(cluster, "login") as account:
        browser = _browser(cluster, account)
        which = f"WHERE user = '{account.name}' AND kind = 'browser'"
        in_database(
            cluster,
            f"UPDATE login SET created = datetime(created, '-13 days', '-23 hours') {which}",
        )
        assert browser.get("/sessions").url.endswith("/sessions")
        in_database(cluster, f"UPDATE login SET created = datetime(created, '-61 minutes') {which}")
        assert browser.get("/sessions").url.partition("?")[0].endswith("/login")


@pytest.fixture(scope="module")
def ghosts(cluster: Cluster) -> Iterator[list[Account]]:
    """Two users whose accounts get changed at the same time."""
    with ExitStack() as stack:
        yield [stack.enter_context(_ghost(cluster)) for _ in range(2)]


@contextmanager
def _ghost(cluster: Cluster) -> Iterator[Account]:
    """A user with everything that a session needs."""
    with throwaway(cluster, *MACHINES) as account:
        cluster.run("ctl", "sacctmgr", "-i", "-Q", "add", "user", account.name, "Account=research")
        yield account
        account.add(*MACHINES)
        account.login("usermod", "--unlock", "--expiredate", "", "--shell", "/bin/bash")
        cluster.run("ctl", "scancel", "--user", account.name)
        api = Api(cluster, account.name, account.token())
        wait_for("its sessions are over", lambda: not api.list(state="running"), 60)
        wait_for(
            "its files are gone",
            lambda: "[]" in in_database(
                cluster, f"SELECT id FROM session WHERE owner = '{account.name}' AND NOT cleaned"
            ),
            60,
        )  # fmt: skip
        cluster.run("ctl", "sacctmgr", "-i", "-Q", "delete", "user", account.name)


def _first_session(api: Api) -> str:
    """A session, once the portal knows that this account exists in Slurm."""

    def launched() -> str | None:
        answer = api("POST", "/sessions", json=TERMINAL)
        return answer.json()["sessions"][0]["id"] if answer.status_code == 201 else None

    return wait_for("a launch", launched, 60, 2)


HOW = {
    "locked": ("usermod", "--lock"),
    "expired": ("usermod", "--expiredate", "1"),
    "no shell": ("usermod", "--shell", "/usr/sbin/nologin"),
    "removed": ("userdel", "--force"),
}


class Inside:
    """What a user has open: a token, an app in a browser, and a stream of it."""

    def __init__(self, cluster: Cluster, account: Account) -> None:
        account.add("login")
        account.login("usermod", "--unlock", "--expiredate", "", "--shell", "/bin/bash")
        self.account = account
        self.api = Api(cluster, account.name, account.token())
        running = self.api.list(state="running")
        session = running[0]["id"] if running else _first_session(self.api)
        self.api.wait_state(session, "RUNNING")
        self.visitor = self.api.open(session, "terminal")
        self.stream = self.visitor.websocket("/ws", "tty")

    def wait_outside(self, deadline: float) -> None:
        """Wait until nothing of it works any more."""
        for what, is_over in (
            ("the token is revoked", lambda: self.api("GET", "/me").status_code == 401),
            ("the browser is logged out", lambda: has_lost_access(self.visitor)),
            ("the stream is cut", lambda: is_closed(self.stream)),
        ):
            wait_for(f"{self.account.name}: {what}", is_over, deadline - time.monotonic(), 1)


# In each pair one account is missing at most: several at once look like an outage of the directory,
# which the portal waits out for ten minutes.
@pytest.mark.parametrize("ways", [("locked", "no shell"), ("expired", "removed")], ids="-".join)
@pytest.mark.timeout(240)
def test_m5_a_closed_account_loses_access_within_a_minute(
    cluster: Cluster, ghosts: list[Account], ways: tuple[str, str]
) -> None:
    """M5: neither a new password nor a removed account ended anything."""
    everybody = [Inside(cluster, ghost) for ghost in ghosts]
    for ghost in ghosts:
        seen = f"SELECT password FROM account WHERE user = '{ghost.name}'"
        usable = partial(lambda seen: "P" in in_database(cluster, seen), seen)
        wait_for("the password is seen to be usable", usable, 60)
    deadlines = []
    for ghost, how in zip(ghosts, ways, strict=True):
        ghost.login(*HOW[how])
        deadlines.append(time.monotonic() + SECONDS)
    for one, deadline, how in zip(everybody, deadlines, ways, strict=True):
        one.wait_outside(deadline)
        print(f"{how}: without access {deadline - time.monotonic():.0f} s before the minute's end")


def test_m5_an_outage_of_the_login_node_logs_nobody_out(cluster: Cluster, alice: Api) -> None:
    """M5: the check must not turn an outage of the login node into one for everybody."""
    cluster.daemon("stop", "login", "sshd")
    try:
        time.sleep(55)  # two checks
        assert alice("GET", "/me").status_code == 200
    finally:
        cluster.daemon("start", "login", "sshd")
    wait_for("logins again", lambda: alice("GET", "/folders").status_code == 200, 60)
