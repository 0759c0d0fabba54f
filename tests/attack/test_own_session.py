"""The session's address at each app's origin: only its owner's own page may use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.attack.app_access import PUBLIC_APP, link
from tests.slurm.conftest import MakeApi
from tests.support.client import TIMEOUT, Api, Browser, Json, Visitor
from tests.support.cluster import Cluster, wait_for

ADDRESS = "/.slipway/session"
LIMIT = 20


def extend(visitor: Visitor, changes: dict[str, str | None] | None = None) -> requests.Response:
    """What JupyterLab's extension sends, with other headers; None omits one."""
    usual = {"Origin": visitor.origin, "X-Slipway": "extend", "Sec-Fetch-Site": "same-origin"}
    headers: dict[str, str | None] = {**usual, **(changes or {})}
    url, body = f"{visitor.origin}{ADDRESS}/extend", {"minutes": 5}
    return visitor.http.post(url, json=body, headers=headers, timeout=TIMEOUT)


@pytest.fixture(scope="module")
def session(alice: Api) -> Json:
    """Alice's session, whose name nobody else may learn."""
    return alice.running(
        name="secretproject", time_limit=LIMIT, resources={"cpus": 1, "memory": "600m"}
    )


@pytest.fixture(scope="module")
def alice(make_api: MakeApi) -> Iterator[Api]:
    """Alice's API client for all tests here."""
    api = make_api("alice")
    yield api
    api.clean()


@pytest.fixture
def lab(alice: Api, session: Json) -> Visitor:
    """Her browser in her JupyterLab."""
    return alice.open(session["id"], "jupyterlab")


def limit(api: Api, session: Json) -> int:
    """Its time limit in minutes."""
    return int(api.get(session["id"])["time_limit"])


def refused(visitor: Visitor, *statuses: int) -> None:
    """Neither reading nor extending works, and the answers tell nothing."""
    for answer in (visitor.get(ADDRESS), extend(visitor)):
        assert answer.status_code in statuses, answer.text
        assert "secretproject" not in answer.text


def test_without_her_cookie_there_is_no_answer(
    alice: Api, bob: Api, session: Json, lab: Visitor
) -> None:
    refused(Visitor(lab.origin), 401)
    word = PUBLIC_APP.format(word="bob")
    his = Visitor(link(bob, bob.running()["id"], "webapp", asked=word)["url"])
    his.http.get(his.link, timeout=TIMEOUT)
    assert his.cookie
    thief = Visitor(lab.origin)
    for name in (his.cookie_name, lab.cookie_name):  # his own, and his value under her name
        thief.http.cookies.set(name, his.cookie)
        refused(thief, 401)
    assert limit(alice, session) == LIMIT


@pytest.mark.parametrize(
    "changes",
    [
        {"X-Slipway": None},
        {"X-Slipway": "yes"},
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "https://example.org"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_request_that_another_page_could_send_is_refused(
    alice: Api, session: Json, lab: Visitor, changes: dict[str, str | None]
) -> None:
    answer = extend(lab, changes)
    assert answer.status_code == 403, answer.text
    assert limit(alice, session) == LIMIT


def test_a_public_app_cannot_extend(alice: Api, session: Json) -> None:
    """Any visitor of it may have left a script in it."""
    word = PUBLIC_APP.format(word="open-house")
    opened = link(alice, session["id"], "webapp", asked=word, public=True)
    stranger = Visitor(opened["url"].partition("?")[0])
    wait_for("the app", lambda: "open-house" in stranger.get("/").text, 60)
    refused(stranger, 401)
    hers = Visitor(opened["url"])
    hers.http.get(hers.link, timeout=TIMEOUT)
    assert extend(hers).status_code == 403
    assert hers.get(ADDRESS).json()["extend"] == []
    assert limit(alice, session) == LIMIT


def test_a_logged_out_browser_gets_no_answer(cluster: Cluster, alice: Api, session: Json) -> None:
    browser = Browser(cluster, "alice")
    answer = browser.post(
        f"/sessions/{session['id']}/apps/jupyterlab/open", {}, allow_redirects=False
    )
    visitor = Visitor(answer.headers["Location"])
    visitor.enter()
    assert visitor.get(ADDRESS).json()["name"] == "secretproject"
    browser.post("/logout", {})
    wait_for("the logout", lambda: visitor.get(ADDRESS).status_code == 401, 10)
    refused(visitor, 401)
    assert limit(alice, session) == LIMIT


def test_her_own_page_extends(alice: Api, session: Json, lab: Visitor) -> None:
    """The last: the attempts above fail for their reasons, and not because nothing works."""
    answer = extend(lab)
    assert answer.status_code == 200, answer.text
    assert limit(alice, session) == LIMIT + 5
