"""Requests forged by other pages, other users' tokens and old cookies have no effect.

Row "CSRF, fixation, old cookies" of what was attacked and found solid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.client import TIMEOUT, Api, Browser, Json, http_session
from tests.support.cluster import Cluster

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def her(logged_in: LoggedIn) -> Browser:
    """Alice's browser, logged in."""
    return logged_in("alice")


@pytest.fixture(scope="module")
def his(logged_in: LoggedIn) -> Browser:
    """Bob's browser."""
    return logged_in("bob")


def _token(browser: Browser) -> str:
    found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', browser.get("/presets").text)
    found = found or re.search(
        r'name="csrf_token"[^>]*value="([^"]+)"', browser.get("/sessions/new").text
    )
    assert found
    return found[1]


def _login_cookie(browser: Browser) -> tuple[str, str]:
    found = [c for c in browser.http.cookies if c.name in ("slipway", "__Host-slipway")]
    assert len(found) == 1
    return found[0].name, str(found[0].value)


@dataclass
class Forged:
    """A form that would end alice's session if she sent it herself."""

    token: str = ""
    origin: str | None = None
    kind: str = "application/x-www-form-urlencoded"
    where: str = "field"


def _send(cluster: Cluster, her: Browser, session: str, forged: Forged) -> requests.Response:
    headers = {"Content-Type": forged.kind, "Referer": f"{cluster.url}/sessions"}
    if forged.origin is not None:
        headers["Origin"] = forged.origin
        headers["Referer"] = f"{forged.origin}/"
    body = f"ids={session}"
    if forged.where == "field":
        body += f"&csrf_token={forged.token}"
    elif forged.where == "header":
        headers["X-CSRFToken"] = forged.token
    address = f"{cluster.url}/sessions/end" + (
        f"?csrf_token={forged.token}" if forged.where == "query" else ""
    )
    return her.http.post(address, body, headers=headers, timeout=TIMEOUT, allow_redirects=False)


def _changed(token: str) -> str:
    """The token with another signature; its last character has bits that do not count."""
    return token[:-9] + ("A" if token[-9] != "A" else "B") + token[-8:]


FORGED = {
    "no token": lambda own, hers, his: Forged(where="nowhere"),
    "an empty token": lambda own, hers, his: Forged(""),
    "a made-up token": lambda own, hers, his: Forged("x" * 90),
    "bob's token": lambda own, hers, his: Forged(his),
    "bob's token in a header": lambda own, hers, his: Forged(his, where="header"),
    "a changed token": lambda own, hers, his: Forged(_changed(hers)),
    "the token in the address": lambda own, hers, his: Forged(hers, where="query"),
    "another site": lambda own, hers, his: Forged(hers, "http://evil.example.org"),
    "no site (null)": lambda own, hers, his: Forged(hers, "null"),
    "another port": lambda own, hers, his: Forged(hers, _other(own, port=10000)),
    "no port": lambda own, hers, his: Forged(hers, _other(own, port=None)),
    "another scheme": lambda own, hers, his: Forged(hers, _other(own, scheme=True)),
    "a name that begins alike": lambda own, hers, his: Forged(hers, f"{own}.evil.example.org"),
    "a user in it": lambda own, hers, his: Forged(hers, f"{own}@evil.example.org"),
    "an app's name": lambda own, hers, his: Forged(hers, own.replace("//", "//x.apps.")),
    "plain text": lambda own, hers, his: Forged(hers, kind="text/plain"),
    "JSON": lambda own, hers, his: Forged(hers, kind="application/json"),
}


def _other(own: str, port: int | None = None, scheme: bool = False) -> str:
    parts = urlsplit(own)
    if scheme:
        return f"{'http' if parts.scheme == 'https' else 'https'}://{parts.netloc}"
    return f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_form_ends_no_session(
    cluster: Cluster, her: Browser, his: Browser, researcher: Api, session: Json, case: str
) -> None:
    forged = FORGED[case](cluster.url, _token(her), _token(his))
    answer = _send(cluster, her, session["id"], forged)
    assert answer.status_code in (400, 403, 415), (answer.status_code, answer.text[:300])
    assert researcher.get(session["id"])["state"] == "RUNNING"


def test_without_a_login_a_form_leads_to_the_login(cluster: Cluster, session: Json) -> None:
    """What was filled in is sent again only after the login of the user who filled it in."""
    kept = ("/sessions", "/folders", "/presets")
    for path in (*kept, "/sessions/end", f"/sessions/{session['id']}/relaunch"):
        browser = http_session()
        page = browser.get(f"{cluster.url}/login", timeout=TIMEOUT).text
        found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
        assert found
        answer = browser.post(
            f"{cluster.url}{path}",
            {"csrf_token": found[1], "ids": session["id"]},
            headers={"Referer": f"{cluster.url}/login"},
            timeout=TIMEOUT,
            allow_redirects=False,
        )
        if path in kept:
            assert answer.status_code == 401, path
            assert 'name="password"' in answer.text, path
            continue
        assert answer.status_code == 303, path
        assert answer.headers["Location"].startswith("/login"), path


def test_login_invalidates_earlier_cookies(cluster: Cluster) -> None:
    """Fixation: bob plants the cookie of his own visit before alice logs in."""
    planted = http_session()
    planted.get(f"{cluster.url}/login", timeout=TIMEOUT)
    cookies = [(c.name, str(c.value)) for c in planted.cookies if "slipway" in c.name]
    assert cookies
    victim = http_session()
    victim.cookies.update(planted.cookies)
    page = victim.get(f"{cluster.url}/login", timeout=TIMEOUT).text
    found = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    assert found
    fields = {"username": "alice", "password": cluster.password("alice"), "csrf_token": found[1]}
    headers = {"Referer": f"{cluster.url}/login"}
    victim.post(f"{cluster.url}/login", fields, headers=headers, timeout=TIMEOUT)
    assert victim.get(f"{cluster.url}/sessions", timeout=TIMEOUT).url.endswith("/sessions")
    for name, value in cookies:
        answer = _with_cookie(cluster, "/sessions", name, value)
        assert answer.status_code == 303, "the planted cookie became a login"


def _with_cookie(cluster: Cluster, path: str, name: str, value: str) -> requests.Response:
    headers = {"Cookie": f"{name}={value}"}
    address = f"{cluster.url}{path}"
    return http_session().get(address, headers=headers, timeout=TIMEOUT, allow_redirects=False)


def test_logout_invalidates_earlier_cookies(cluster: Cluster) -> None:
    browser = Browser(cluster, "alice")
    name, value = _login_cookie(browser)
    assert _with_cookie(cluster, "/sessions", name, value).status_code == 200
    browser.post("/logout", {"csrf_token": _token(browser)})
    assert _with_cookie(cluster, "/sessions", name, value).status_code == 303
    assert _with_cookie(cluster, "/api/v1/sessions", name, value).status_code == 401


def test_a_browsers_secret_is_not_accepted_as_token(cluster: Cluster, her: Browser) -> None:
    name, value = _login_cookie(her)
    for authorization in (f"Bearer {value}", f"Bearer slipway_{value}", f"Basic {value}", value):
        answer = http_session().get(
            f"{cluster.url}/api/v1/sessions",
            headers={"Authorization": authorization},
            timeout=TIMEOUT,
        )
        assert answer.status_code == 401, authorization
    # Nor does the API accept the cookie: no page of another site can use it there.
    assert _with_cookie(cluster, "/api/v1/sessions", name, value).status_code == 401


def test_a_token_is_not_accepted_as_login(
    cluster: Cluster, tokens: dict[str, str], her: Browser
) -> None:
    name, _ = _login_cookie(her)
    assert _with_cookie(cluster, "/sessions", name, tokens["alice"]).status_code == 303
    answer = http_session().get(
        f"{cluster.url}/sessions",
        headers={"Authorization": f"Bearer {tokens['alice']}"},
        timeout=TIMEOUT,
        allow_redirects=False,
    )
    assert answer.status_code == 303


def test_a_token_for_reading_changes_nothing(
    cluster: Cluster, researcher: Api, session: Json
) -> None:
    body = {"username": "alice", "password": cluster.password("alice"), "scopes": ["read"]}
    answer = Api(cluster, "alice")("POST", "/tokens", json=body)
    assert answer.status_code == 201, answer.text
    reader = Api(cluster, "alice", answer.json()["token"])
    identifier = session["id"]
    assert reader.get(identifier)["id"] == identifier
    for method, path in (
        ("DELETE", f"/sessions/{identifier}"),
        ("POST", "/sessions"),
        ("POST", f"/sessions/{identifier}/apps/jupyterlab"),
        ("POST", f"/sessions/{identifier}/extend"),
        ("POST", "/folders"),
    ):
        answer = reader(method, path, json={})
        assert answer.status_code == 403, (method, path, answer.status_code, answer.text)
    assert researcher.get(identifier)["state"] == "RUNNING"
