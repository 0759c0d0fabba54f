"""An end that nobody requested, as its owner sees it: in the list and at the app's address."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import SOON
from tests.support.client import OVER, TINY, Api
from tests.support.cluster import Cluster

WHO = "alice"
LIMIT = 150_000
"""Milliseconds within which a session with one minute to live is over."""
STARTS = 60_000

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client, without notices of earlier tests."""
    found = make_api(WHO)
    for session in found.list(state="finished") + found.list(state="other"):
        if session["end"]["seen"] is None:
            found.ask("POST", f"/sessions/{session['id']}/dismiss", json={"notice": "end"})
    yield found
    found.clean()


def notice(page: Page, session: str) -> Locator:
    """The notice of one end."""
    return page.locator(f"#ended-{session}")


def killed(api: Api, cluster: Cluster, name: str) -> str:
    """A session that root has cancelled."""
    session: str = api.running(name=name, **TINY)["id"]
    cluster.run("ctl", "scancel", f"--name={session}")
    api.wait_state(session, *OVER)
    return session


def test_the_time_limit_is_told_and_more_is_proposed(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)  # first: the session has one minute to live
    short = api.launch(name="short1", time_limit=1, mounts=[{"folder": "home"}], **TINY)
    api.wait_state(short["id"], "RUNNING")
    with page.context.expect_page(timeout=STARTS) as opened:
        page.locator(f"#s-{short['id']}").get_by_role("button", name="Terminal").click()
    app = opened.value
    expect(app.get_by_label("Terminal input")).to_be_attached(timeout=STARTS)
    told = notice(page, short["id"])
    # Its name has another number if the test is repeated.
    name = short["name"]
    expect(told).to_contain_text(f"{name} reached its time limit at", timeout=LIMIT)
    expect(told).to_contain_text("Your home directory was kept.")
    clean_in_both_themes(page)
    picture(page, "ended-lately")
    told.get_by_role("link", name="Launch again with more time").click()
    expect(page.get_by_role("heading", name="Resources")).to_be_visible()
    assert re.search(r"[?&]more=time", page.url)
    expect(page.locator("[name=time_limit]")).to_have_value("2 min")
    page.go_back()
    # The app's own window: loading it again leads to the portal, which knows its owner.
    app.reload()
    expect(app.get_by_role("heading", name=f"{name} reached its time limit")).to_be_visible()
    expect(app.get_by_text("Your home directory was kept.")).to_be_visible()
    clean_in_both_themes(app)
    picture(app, "ended-app")
    app.set_viewport_size({"width": 390, "height": 800})
    assert app.evaluate("document.documentElement.scrollWidth") <= 390
    app.get_by_role("main").get_by_role("link", name="Sessions", exact=True).click()
    app.wait_for_url("**/sessions")


def test_others_find_nothing_at_the_address(log_in: LogIn, api: Api, cluster: Cluster) -> None:
    hers = api.running(name="hers1", **TINY)
    session, name = hers["id"], hers["name"]
    origin = api.open(session, "terminal").origin
    cluster.run("ctl", "scancel", f"--name={session}")
    api.wait_state(session, *OVER)
    page = log_in("bob")
    page.goto(origin)
    expect(page.get_by_text("There is no app at this address.")).to_be_visible()
    assert name not in page.content()
    mine = log_in(WHO)
    mine.goto(origin)
    expect(mine.get_by_role("heading", name=f"{name} was ended")).to_be_visible()
    mine.get_by_role("button", name="Launch again").click()
    mine.wait_for_url("**/sessions*")
    expect(mine.locator("tr[data-session]")).to_have_count(1)
    for one in api.list(state="running"):
        api.stop(one["id"])


def test_a_waiting_page_learns_of_the_end(log_in: LogIn, api: Api, cluster: Cluster) -> None:
    api.running(name="wide1", resources={"cpus": 2, "memory": "300m"})
    waiting = api.launch(name="waits1", resources={"cpus": 2, "memory": "300m"})
    page = log_in(WHO)
    link = api.ask("POST", f"/sessions/{waiting['id']}/apps/terminal")["url"]
    page.goto(link)
    expect(page.locator("#wait")).to_have_attribute("data-step", "queued")
    cluster.run("ctl", "scancel", f"--name={waiting['id']}")
    expect(page.get_by_role("heading", name=f"{waiting['name']} was ended")).to_be_visible(
        timeout=SOON
    )
    api.clean()


def test_notices_are_dismissed_with_the_focus_kept(
    log_in: LogIn, api: Api, cluster: Cluster, picture: Picture
) -> None:
    ends = [killed(api, cluster, f"gone{number}") for number in range(3)]
    page = log_in(WHO)
    first, second, third = (notice(page, end) for end in ends)
    expect(first).to_contain_text("by root (an administrator)")
    expect(first).to_contain_text("Its files were deleted.")
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"ended-lately-{width}")
    third.get_by_role("button", name="Dismiss: gone2").press("Enter")
    expect(third).to_have_count(0, timeout=SOON)
    expect(second.get_by_role("button", name="Dismiss: gone1")).to_be_focused()
    page.reload()
    expect(third).to_have_count(0)
    page.get_by_role("button", name="Dismiss all").press("Enter")
    expect(page.locator("#ended")).to_have_count(0, timeout=SOON)
    expect(page.locator("#tabs [aria-current]")).to_be_focused()


def test_without_javascript_notices_are_dismissed(
    log_in: LogIn, api: Api, cluster: Cluster
) -> None:
    end = killed(api, cluster, "gone9")
    page = log_in(WHO, java_script_enabled=False)
    expect(notice(page, end)).to_be_visible()
    notice(page, end).get_by_role("button", name="Dismiss: gone9").click()
    expect(page.get_by_role("heading", name="Your sessions")).to_be_visible()
    expect(notice(page, end)).to_have_count(0)
