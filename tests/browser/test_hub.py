"""JupyterHub's pages over the spawner: a researcher starts, uses, loses and cancels servers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import Picture
from tests.slurm.conftest import MakeApi, MakeHub
from tests.support.browser_apps import LIMITS, new_notebook, run_cell
from tests.support.client import OVER, Api
from tests.support.cluster import Cluster, wait_for
from tests.support.hubs import SEEN, HubApi, path_of, session_at, sessions_at, sized

WIDE: ViewportSize = {"width": 1280, "height": 860}
NARROW: ViewportSize = {"width": 380, "height": 800}
STARTS = 90_000
"""Milliseconds until JupyterLab shows itself on a busy machine."""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def api(make_api: MakeApi) -> Iterator[Api]:
    """Alice at the portal."""
    made = make_api("alice")
    yield made
    made.clean_all()


@pytest.fixture(scope="module")
def hub(make_hub: MakeHub) -> Iterator[HubApi]:
    """Alice's programs at JupyterHub; her servers end with the file."""
    made = make_hub("alice")
    made.clean()
    yield made
    made.clean()


@pytest.fixture(scope="module")
def page(browser: Browser, cluster: Cluster, hub: HubApi) -> Iterator[Page]:
    """Alice's browser, logged in at JupyterHub with its form."""
    context = browser.new_context(viewport=WIDE)
    found = context.new_page()
    found.goto(f"{hub.url}/hub/login")
    found.get_by_label("Username").fill("alice")
    found.get_by_label("Password").fill(cluster.password("alice"))
    found.get_by_role("button", name="Sign in").click()
    found.wait_for_url(re.compile("/hub/(spawn|home)"))
    yield found
    context.close()


@pytest.fixture
def narrow(page: Page) -> Iterator[Page]:
    """The same on a telephone's screen."""
    page.set_viewport_size(NARROW)
    yield page
    page.set_viewport_size(WIDE)


def _fill(page: Page, memory: str = "600 MB", cpus: str = "1") -> None:
    page.get_by_label("Environment", exact=True).select_option("python/3.13")
    page.get_by_label("CPU cores").fill(cpus)
    page.get_by_label("Memory").fill(memory)


def _open_form(page: Page, hub: HubApi, name: str = "") -> None:
    page.goto(f"{hub.url}/hub/spawn/alice/{name}".rstrip("/"))
    expect(page.get_by_label("CPU cores")).to_be_visible()


def _start(page: Page) -> None:
    page.get_by_role("button", name="Start").click()


def test_a_notebook_runs_in_a_server_of_the_chosen_size(
    page: Page, hub: HubApi, api: Api, picture: Picture
) -> None:
    _open_form(page, hub)
    picture(page, "hub-form")
    _fill(page)
    _start(page)
    page.wait_for_url(re.compile("/hub/spawn-pending/alice|/user/alice/"))
    picture(page, "hub-progress")
    page.wait_for_url("**/user/alice/lab**", timeout=STARTS)
    new_notebook(page)
    output = run_cell(page, LIMITS)
    expect(output).to_have_text(f"memory {600 * 1024**2} cores 1\n", timeout=STARTS)
    picture(page, "hub-notebook")
    session = session_at(api, path_of("alice"))
    assert (session["owner"], session["environment"]) == ("alice", "python")
    assert (session["resources"]["cpus"], session["resources"]["memory"]) == (1, "600m")
    names = [app["name"] for app in session["apps"]]
    assert "jupyterhub" in names


def test_a_named_server_beside_it(page: Page, hub: HubApi, api: Api, picture: Picture) -> None:
    _open_form(page, hub, "second")
    _fill(page, "500 MB")
    _start(page)
    page.wait_for_url("**/user/alice/second/lab**", timeout=STARTS)
    assert hub.visit("second").get("/api/status").status_code == 200
    assert hub.visit().get("/api/status").status_code == 200
    page.goto(f"{hub.url}/hub/home")
    expect(page.get_by_role("link", name="second")).to_be_visible()
    picture(page, "hub-home")
    page.locator("#stop-second").click()
    hub.wait_gone("second", 20)
    assert sessions_at(api, path_of("alice", "second"), state="running") == []


def test_a_session_ended_in_the_portal_is_stopped_in_jupyterhub(hub: HubApi, api: Api) -> None:
    session = session_at(api, path_of("alice"))
    api.stop(session["id"])
    api.wait_state(session["id"], *OVER)
    hub.wait_gone("", SEEN)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("Memory", "plenty", "write a size with its unit"),
        ("Memory", "900 TB", "at most 64 TB"),
        ("Time limit", "soon", "write a time"),
        ("Environment variables", "A B=1", "A B"),
    ],
)
def test_the_forms_refusals_are_words_on_the_form(
    page: Page, hub: HubApi, field: str, value: str, words: str, picture: Picture
) -> None:
    _open_form(page, hub, "refused")
    _fill(page)
    page.get_by_label(field, exact=True).fill(value)
    _start(page)
    told = page.get_by_text(words)
    expect(told.first).to_be_visible()
    picture(page, f"hub-refused-{field.split(maxsplit=1)[0].lower()}")
    expect(page.get_by_label("CPU cores")).to_be_visible()
    assert "refused" not in hub.servers()


def test_a_server_waits_for_its_turn_and_starts_by_itself(
    page: Page, hub: HubApi, api: Api, narrow: Page, picture: Picture
) -> None:
    hub.clean()
    for name in ("first", "other"):
        hub.start(name, sized(1, "1300m"))
    for name in ("first", "other"):
        hub.wait_ready(name)
    _open_form(page, hub, "third")
    picture(page, "hub-form-narrow")
    _fill(page, "600 MB")
    _start(page)
    page.wait_for_url("**/hub/spawn-pending/alice/third**")
    reason = page.locator("#progress-message")
    expect(page.locator("body")).to_contain_text("of your 3 GB", timeout=STARTS)
    expect(reason).to_be_visible()
    picture(page, "hub-waiting-narrow")
    page.set_viewport_size(WIDE)
    picture(page, "hub-waiting")
    hub.stop("first")
    page.wait_for_url("**/user/alice/third/lab**", timeout=STARTS)
    for name in ("other", "third"):
        hub.stop(name)
        hub.wait_gone(name, 30)


def test_a_start_is_cancelled_while_it_waits(
    page: Page, hub: HubApi, api: Api, cluster: Cluster, picture: Picture
) -> None:
    cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        _open_form(page, hub, "never")
        _fill(page)
        _start(page)
        page.wait_for_url("**/hub/spawn-pending/alice/never**")
        path = path_of("alice", "never")
        session = wait_for("its session", lambda: sessions_at(api, path, state="running"))[0]
        page.goto(f"{hub.url}/hub/home")
        picture(page, "hub-home-pending")
        page.locator("#stop-never").click()
        hub.wait_gone("never", 20)
        assert api.wait_state(session["id"], *OVER)["end"]["cause"] == "cancelled"
    finally:
        cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=UP")
