"""The time left and memory kills, seen where people work: in the terminal and in JupyterLab."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, StorageState, expect

from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import SOON
from tests.support.client import OVER, TINY, Api, Json
from tests.support.cluster import Cluster

WHO = "alice"
STARTS = 90_000
"""Milliseconds until JupyterLab can be used on a busy machine."""
BEATS = 30_000
"""Milliseconds within which the runner has reported and shown the answer."""
LAB: Json = {"resources": {"cpus": 1, "memory": "600m"}}

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client."""
    found = make_api(WHO)
    yield found
    found.clean()


def enter(page: Page, api: Api, session: str, app: str) -> Page:
    """A window with an app."""
    window = page.context.new_page()
    window.goto(api.ask("POST", f"/sessions/{session}/apps/{app}")["url"])
    return window


def expect_on_screen(window: Page, text: str, timeout: int = BEATS) -> None:
    """Wait until the terminal shows this."""
    window.wait_for_function(
        """(text) => { const lines = window.term?.buffer.active;
          return lines && Array.from({ length: window.term.rows },
            (_, y) => lines.getLine(lines.viewportY + y)?.translateToString(true) ?? "")
            .join(" ").includes(text); }""",
        arg=text,
        timeout=timeout,
    )


def test_the_terminal_shows_the_time_left_and_stays_unused(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    session = api.running(name="clock1", time_limit=3, **TINY)["id"]
    window = enter(log_in(WHO), api, session, "terminal")
    expect_on_screen(window, "clock1 ·", STARTS)
    used = api.get(session)["last_used"]
    # A change of the line later, the untouched window still is no use.
    expect_on_screen(window, "clock1 · 1 min left", 120_000)
    assert api.get(session)["last_used"] == used
    # The message of the last minute.
    expect_on_screen(window, "clock1 ends in", 90_000)
    picture(window, "terminal-time-left")


def test_an_extension_shows_in_the_terminal(log_in: LogIn, api: Api) -> None:
    session = api.running(name="clock2", time_limit=10, **TINY)["id"]
    window = enter(log_in(WHO), api, session, "terminal")
    expect_on_screen(window, "min left", STARTS)
    api.ask("POST", f"/sessions/{session}/extend", json={"minutes": 240})
    expect_on_screen(window, "clock2 · over 4 h left")


def chip(window: Page) -> Locator:
    """The extension's part of the top bar."""
    return window.locator(".slipway-chip")


@pytest.mark.parametrize(
    ("app", "version"), [("jupyterlab", "3.13"), ("notebook", "3.13"), ("jupyterlab", "3.11")]
)
def test_jupyter_shows_the_time_left_and_extends(
    log_in: LogIn, api: Api, cluster: Cluster, picture: Picture, app: str, version: str
) -> None:
    session = api.running(name="lab1", time_limit=12, version=version, **LAB)["id"]
    window = enter(log_in(WHO), api, session, app)
    expect(chip(window)).to_have_text(re.compile(r"lab1 · \d+ min left"), timeout=STARTS)
    expect(chip(window)).to_have_class(re.compile("soon"))
    news = window.get_by_role("alert").filter(has_text="lab1 ends in")
    expect(news).to_contain_text("is deleted")
    picture(window, f"{app}-{version}-time-left")
    news.get_by_role("button", name="Dismiss").click()
    used = api.get(session)["last_used"]
    chip(window).press("Enter")
    box = window.get_by_role("dialog", name="This session")
    expect(box).to_contain_text("lab1 ends at")
    picture(window, f"{app}-{version}-extend")
    box.get_by_role("button", name="1 h more").press("Enter")
    expect(chip(window)).to_have_text(re.compile(r"lab1 · 1 h \d+ min left"), timeout=SOON)
    expect(box).to_be_hidden()
    expect(chip(window)).to_be_focused()
    assert api.get(session)["time_limit"] == 72
    assert used is not None
    cluster.run("ctl", "scancel", f"--name={session}")
    api.wait_state(session, *OVER)
    expect(chip(window)).to_have_text("lab1 has ended", timeout=BEATS)
    with window.expect_popup() as opened:
        window.get_by_role("link", name="What happened, and launch again").click()
    expect(opened.value.get_by_role("heading", name="lab1 was ended")).to_be_visible(timeout=BEATS)


def fill_in(page: Page, cluster: Cluster) -> None:
    """Log in at the form."""
    page.get_by_label("User name").fill(WHO)
    page.get_by_label("Password").fill(cluster.password(WHO))
    page.get_by_role("button", name="Log in").click()


@pytest.mark.parametrize("version", ["3.13", "3.11"])
def test_jupyter_goes_on_after_a_log_out_in_another_tab(
    log_in: LogIn,
    api: Api,
    cluster: Cluster,
    cookies: dict[str, StorageState],
    picture: Picture,
    version: str,
) -> None:
    """F1 of day.md: it said that the session had ended, and never asked again."""
    session = api.running(name="lab2", version=version, **LAB)["id"]
    cookies.pop(WHO, None)  # a log-in of its own, since it ends
    page = log_in(WHO)
    del cookies[WHO]
    page.goto(f"{cluster.url}/sessions/{session}")
    with page.expect_popup() as opened:
        page.locator(".detail-do").get_by_role("button", name="JupyterLab").click()
    window = opened.value
    expect(chip(window)).to_have_text(re.compile("lab2"), timeout=STARTS)
    window.evaluate("window.kept = 'not saved'")
    page.locator("#account-menu summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(chip(window)).to_have_text("Logged out", timeout=BEATS)
    dialog = window.get_by_role("dialog", name="This window is logged out")
    expect(dialog).to_contain_text("That does not end lab2")
    picture(window, "jupyterlab-logged-out")
    with window.expect_popup() as opened:
        dialog.get_by_role("link", name="Log in again").click()
    fill_in(opened.value, cluster)
    expect(chip(window)).to_have_text(re.compile(r"lab2 ·|lab2$"), timeout=STARTS)
    expect(dialog).to_be_hidden()
    assert window.evaluate("window.kept") == "not saved"
    assert api.get(session)["state"] == "RUNNING"


def test_a_process_killed_for_want_of_memory_is_named(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    session = api.running(name="hungry1", **LAB)["id"]
    window = enter(page, api, session, "terminal")
    expect_on_screen(window, "hungry1", STARTS)
    window.get_by_label("Terminal input").press_sequentially(
        "python3 -c 'import time; b=[b\"x\" * 2**24 for _ in iter(lambda: time.sleep(.1), 1)]'\n"
    )
    expect_on_screen(window, "python3 was stopped: it wanted more than the 0.59 GB", 120_000)
    row = page.locator(f"#s-{session}")
    expect(row).to_contain_text("python3 was stopped at", timeout=SOON)
    expect(row).to_contain_text("it wanted more than the 600 MB of this session.")
    picture(page, "memory-kill")
    assert "python3 was stopped" in api.ask("GET", f"/sessions/{session}/log")["log"]
    usage = api.get(session)["usage"]
    assert usage["oom_program"] == "python3"
    assert usage["oom_at"]
    expect(row.get_by_role("link", name="Launch with 1.5 GB")).to_be_visible()
    row.get_by_role("button", name="Dismiss").click()
    expect(row).not_to_contain_text("was stopped at", timeout=SOON)
