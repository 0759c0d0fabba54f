"""A researcher's ordinary day, in a real browser on a real cluster."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_apps import (
    LIMITS,
    expect_output,
    new_notebook,
    open_app,
    run_cell,
    screen_text,
    type_line,
)
from tests.support.browser_wizard import STARTS, fill_in, launch
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same researcher's API client, to check behind the pages and to clean up."""
    return researcher(WHO)


def drawn_share(terminal: Page) -> float:
    """The share of the window's width that the terminal uses."""
    wide = terminal.locator(".xterm-screen").bounding_box()
    return wide["width"] / 1280 if wide else 0.0


def scrolled_to(terminal: Page, text: str) -> bool:
    """Turn the wheel once; whether the terminal shows a text afterwards."""
    terminal.mouse.wheel(0, -400)
    return text in screen_text(terminal)


def test_an_ordinary_day(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    row = launch(page, "ordinary1")
    page.evaluate("window.neverReloaded = true")
    expect(row).to_have_attribute("data-state", re.compile("PENDING|STARTING"))
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    assert page.evaluate("window.neverReloaded")

    lab = open_app(page, row, "JupyterLab")
    new_notebook(lab)
    expect(run_cell(lab, LIMITS)).to_have_text("memory 629145600 cores 1\n", timeout=STARTS)
    picture(lab, "jupyterlab")
    lab.keyboard.press("Control+S")
    lab.get_by_role("button", name="Rename and Save").click()

    terminal = open_app(page, row, "Terminal")
    expect(terminal.locator(".xterm-screen")).to_be_visible(timeout=STARTS)
    assert drawn_share(terminal) > 0.95  # up to the right edge, not only the initial size
    type_line(terminal, "ls")
    expect_output(terminal, "Untitled.ipynb")
    type_line(terminal, "echo made-here > from-the-terminal.txt; seq 1000 1200")
    expect_output(terminal, "1200")
    picture(terminal, "terminal")
    lab.get_by_role("button", name="Refresh").first.click()
    expect(lab.get_by_role("listitem", name="from-the-terminal.txt")).to_be_visible()

    terminal.reload()
    expect_output(terminal, "1200")
    # Scrolling back is tmux's: a line far above the window can still be reached.
    terminal.mouse.move(400, 300)
    wait_for("the first lines again", lambda: scrolled_to(terminal, "1001"), 40)

    page.bring_to_front()
    expect(row.locator(".bar").first).to_be_visible(timeout=30_000)
    picture(page, "sessions-light")
    row.get_by_role("button", name="End ordinary1").click()
    page.get_by_role("button", name="End session").click()
    expect(row).to_have_count(0, timeout=15_000)
    page.get_by_role("link", name="Finished").click()
    expect(page.locator("tr[data-name=ordinary1]").first).to_contain_text("Ended by you.")


def test_a_cell_over_the_limit_ends_only_its_kernel(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    row = launch(page, "greedy1")
    lab = open_app(page, row, "JupyterLab")  # while it is pending: the window opens it when it can
    new_notebook(lab)
    run_cell(lab, "x = bytearray(900 * 1024**2)\nfor i in range(0, len(x), 4096): x[i] = 1")
    expect(lab.get_by_role("dialog")).to_contain_text("Kernel Restarting", timeout=STARTS)
    page.bring_to_front()
    expect(row).to_have_attribute("data-state", "RUNNING")
    expect(row).to_contain_text("it wanted more than the", timeout=30_000)


def test_wrong_fields_are_named_and_nothing_is_launched(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    before = len(api.list(state="running"))
    fill_in(page, "my session", "lots")
    page.get_by_label("CPU cores", exact=True).fill("0")
    page.get_by_role("button", name="Confirm and launch").click()
    for field, words, step in (
        ("Session name", "4 to 64 letters", "Environment"),
        ("CPU cores", "at least 1", "Resources"),
        ("Memory", "600", "Resources"),
    ):
        place = page.locator(".steps").get_by_role("link", name=step)
        expect(place).to_contain_text("something is wrong here")
        place.click()
        box = page.get_by_label(field, exact=True)
        expect(box).to_have_attribute("aria-invalid", "true")
        named = (box.get_attribute("aria-describedby") or "").split()[0]
        expect(page.locator(f"#{named}")).to_contain_text(words)
    picture(page, "wrong-fields")
    page.get_by_label("CPU cores", exact=True).fill("99")
    page.get_by_label("Memory", exact=True).fill("600 MB")
    page.locator(".steps").get_by_role("link", name="Environment").click()
    expect(page.get_by_label("Session name")).to_have_value("my session")
    page.get_by_label("Session name").fill("goodname")
    page.get_by_role("button", name="Confirm and launch").click()  # it was asked before
    expect(page.locator("#error-resources-cpus")).to_be_visible()
    assert len(api.list(state="running")) == before


def test_a_double_click_launches_one_session(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    fill_in(page, "double1")
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").dblclick()
    expect(page.locator("tr[data-name=double1]")).to_have_count(1)
    page.reload()
    expect(page.locator("tr[data-name=double1]")).to_have_count(1)
    assert [s["name"] for s in api.list(state="running")] == ["double1"]


def test_sessions_over_the_limit_wait_and_move_up(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    rows = [launch(page, f"queue{number}") for number in range(4)]
    for row in rows[:3]:
        expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    expect(rows[3]).to_have_attribute("data-state", "PENDING")
    expect(rows[3]).to_contain_text("You use 3 of your 3 cores (queue0, queue1, queue2)")
    picture(page, "sessions-pending")
    page.emulate_media(color_scheme="dark")
    picture(page, "sessions-dark")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "sessions-narrow")
    page.set_viewport_size({"width": 1280, "height": 860})
    rows[0].get_by_role("button", name="End queue0").click()
    page.get_by_role("button", name="End session").click()
    expect(rows[3]).to_have_attribute("data-state", "RUNNING", timeout=STARTS)


def test_a_lost_connection_is_shown_and_recovers(log_in: LogIn, cluster: Cluster) -> None:
    page = log_in(WHO)
    note = page.get_by_text("Connection lost")
    expect(note).to_be_hidden()
    cluster.daemon("stop", "portal", "web")
    try:
        expect(note).to_be_visible(timeout=20_000)
    finally:
        cluster.daemon("start", "portal", "web")
    expect(note).to_be_hidden(timeout=30_000)


def test_another_users_app_is_not_found(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    row = launch(page, "private1")
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    terminal = open_app(page, row, "Terminal")
    expect(terminal.locator(".xterm-screen")).to_be_visible(timeout=STARTS)
    other = log_in("bob" if WHO == "alice" else "alice")
    expect(other.get_by_text("Nothing is running")).to_be_visible()
    answer = other.goto(terminal.url)
    assert answer is not None
    assert answer.status == 404
    assert "xterm" not in other.content()
    log = other.goto(f"{page.url.partition('/sessions')[0]}/sessions/{api.list()[0]['id']}/log")
    assert log is not None
    assert log.status == 404
