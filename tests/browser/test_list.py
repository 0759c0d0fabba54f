"""The list of sessions: tabs, columns, search, order, selection and ending, on a real cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.slurm.conftest import MakeApi
from tests.support.browser_sessions import row_of
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
OTHER = "bob"
STARTS = 60_000
SMALL: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The researcher's API client: launches independently of the page, and cleans up."""
    return researcher(WHO)


@pytest.fixture
def other(make_api: MakeApi) -> Iterator[Api]:
    """Another user."""
    found = make_api(OTHER)
    yield found
    found.clean()


def names(page: Page) -> list[str]:
    """The sessions shown, from the top."""
    found: list[str] = page.locator("tr[data-session]").evaluate_all(
        "rows => rows.map((row) => row.dataset.name)"
    )
    return found


def shown(page: Page) -> list[str]:
    """The same by ids, since names may repeat."""
    found: list[str] = page.locator("tr[data-session]").evaluate_all(
        "rows => rows.map((row) => row.dataset.session)"
    )
    return found


def pick(page: Page, *names: str) -> None:
    """Check the boxes of some rows."""
    for name in names:
        page.get_by_label(f"Select {name}", exact=True).check()


def polled(page: Page, times: int = 2) -> None:
    """Wait until the page has polled."""
    for _ in range(times):
        with page.expect_response(lambda answer: "/sessions/rows" in answer.url):
            pass


def test_tabs_with_counts(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    expect(page.get_by_text("Nothing is running")).to_be_visible()
    picture(page, "list-empty")
    clean_in_both_themes(page)
    before = int(page.get_by_role("link", name="Finished").locator(".count").inner_text())
    done = api.launch(name="tabs1", **SMALL)
    expect(row_of(page, "tabs1")).to_have_count(1)
    expect(page.get_by_role("link", name="Running")).to_contain_text("1")
    api.stop(done["id"])
    expect(page.get_by_text("Nothing is running")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("link", name="Finished").locator(".count")).to_have_text(
        str(before + 1)
    )
    page.evaluate("window.neverReloaded = true")
    page.get_by_role("link", name="Finished").click()
    expect(row_of(page, "tabs1").first).to_contain_text("Ended by you.")
    assert page.url.endswith("state=finished")
    picture(page, "list-finished")
    clean_in_both_themes(page)
    fits(page, 390, 320)
    page.get_by_role("link", name="Failed").click()
    expect(page.get_by_role("link", name="Failed")).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(row_of(page, "tabs1").first).to_be_visible()
    assert page.evaluate("window.neverReloaded")


def test_columns(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    session = api.running(
        name="columns1",
        version="3.13",
        resources={"cpus": 1, "memory": "300m", "shared_memory": "64m"},
    )
    row = row_of(page, "columns1")
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    for words in (f"job {session['job_id']}", f"on {session['node']}", "Python", "3.13", "1 core"):
        expect(row).to_contain_text(words)
    expect(row).to_contain_text("0.29 GB")
    expect(row).to_contain_text("0.06 GB shared")
    expect(row.locator(".bar").first).to_be_visible(timeout=30_000)
    first = row.locator(".elapsed").inner_text()
    expect(row.locator(".elapsed")).not_to_have_text(first)
    row.get_by_role("button", name="More for columns1").click()
    menu = page.get_by_role("group", name="More for columns1")
    expect(menu.get_by_role("button", name="Launch again")).to_be_focused()
    expect(menu.get_by_role("link", name="Edit and launch")).to_have_attribute(
        "href", f"/sessions/new?from={session['id']}"
    )
    polled(page)
    expect(menu).to_be_visible()  # an update closes nothing
    picture(page, "list-menu")
    clean_in_both_themes(page)
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        row.get_by_role("button", name="More for columns1").click()
        menu.get_by_role("link", name="Download the log").click()
    assert download.value.suggested_filename == f"columns1-{session['id'][:8]}.log"


def test_administrators_see_everybodys(
    log_in: LogIn, api: Api, other: Api, picture: Picture
) -> None:
    api.launch(name="hers1", **SMALL)
    other.launch(name="bobs1", **SMALL)
    mine = log_in(WHO)
    expect(row_of(mine, "hers1")).to_have_count(1)
    expect(row_of(mine, "bobs1")).to_have_count(0)
    mine.goto(mine.url.partition("?")[0] + "?owner=bob&q=bobs1")
    expect(mine.locator("tr[data-session]")).to_have_count(0)
    page = log_in("admin")
    expect(row_of(page, "hers1").locator(".c-owner")).to_have_text(WHO)
    expect(row_of(page, "bobs1")).to_have_count(1)
    picture(page, "list-admin")
    clean_in_both_themes(page)
    fits(page, 1280, 800, 390, 320)
    page.get_by_label("Owner", exact=True).select_option(OTHER)
    expect(row_of(page, "hers1")).to_have_count(0)
    expect(row_of(page, "bobs1")).to_have_count(1)
    assert "owner=bob" in page.url
    page.reload()
    expect(page.get_by_label("Owner", exact=True)).to_have_value(OTHER)
    page.get_by_label("Owner", exact=True).select_option(label="Everybody")
    page.get_by_role("link", name="Owner").click()
    expect(page.get_by_role("columnheader", name="Owner")).to_have_attribute(
        "aria-sort", "ascending"
    )


def test_ending_one_asks_for_confirmation(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    api.launch(name="ending1", **SMALL)
    button = row_of(page, "ending1").get_by_role("button", name="End ending1")
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("End ending1?")
    expect(dialog).to_contain_text("Its apps and everything that runs in it stop at once.")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    polled(page)
    expect(dialog).to_be_visible()
    picture(page, "list-end")
    clean_in_both_themes(page)
    page.keyboard.press("Escape")
    expect(row_of(page, "ending1")).to_have_count(1)
    session = row_of(page, "ending1").get_attribute("data-session")
    page.goto(f"{page.url.partition('?')[0]}/{session}/end")
    picture(page, "end")
    clean_in_both_themes(page)
    fits(page, 390, 320)
    page.go_back()
    button.click()
    dialog.get_by_role("button", name="End session").click()
    expect(row_of(page, "ending1")).to_have_count(0, timeout=20_000)


def test_ending_without_a_script(
    browser: Chromium, log_in: LogIn, cookies: dict[str, Any], api: Api, cluster: Cluster
) -> None:
    log_in(WHO)
    made = [api.launch(name=f"plain{number}", **SMALL)["id"] for number in range(3)]
    context = browser.new_context(java_script_enabled=False, storage_state=cookies[WHO])
    try:
        page = context.new_page()
        page.goto(f"{cluster.url}/sessions?q=plain")
        row_of(page, "plain0").get_by_role("button", name="End plain0").click()
        expect(page.get_by_role("heading", name="End plain0?")).to_be_visible()
        page.get_by_role("link", name="Cancel").click()
        assert page.url.endswith("?q=plain")
        row_of(page, "plain0").get_by_role("button", name="End plain0").click()
        page.get_by_role("button", name="End session").click()
        assert page.url.endswith("?q=plain")
        pick(page, "plain1", "plain2")
        page.get_by_role("button", name="End the selected sessions").click()
        expect(page.get_by_role("heading", name="End 2 sessions?")).to_be_visible()
        page.get_by_role("button", name="End 2 sessions").click()
    finally:
        context.close()
    for session in made:
        assert api.wait_state(session, "FINISHED")["end"]["text"] == "Ended by alice."


def test_several_are_ended_at_once(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    made = [api.launch(name=f"bulk{number}", **SMALL)["id"] for number in range(5)]
    expect(page.locator("tr[data-session]")).to_have_count(5)
    bar = page.get_by_role("region", name="Selected sessions")
    expect(bar).to_be_hidden()
    pick(page, "bulk1", "bulk4")  # one running, perhaps, and one pending
    expect(bar).to_contain_text("2 selected")
    wait_for("three running", lambda: page.locator("[data-state=RUNNING]").count() == 3, 60)
    polled(page)
    assert page.locator("input[name=ids]:checked").count() == 2  # updates do not change them
    picture(page, "list-picked")
    clean_in_both_themes(page)
    fits(page, 800, 390, 320)
    page.get_by_role("button", name="End 2 sessions").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_contain_text(["bulk4", "bulk1"])
    expect(dialog.get_by_role("listitem").first).to_contain_text(
        re.compile(r"job \d+, launched .* ago")
    )
    picture(page, "list-end-many")
    clean_in_both_themes(page)
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_label("Select all shown").check()
    expect(bar).to_contain_text("5 selected")
    page.get_by_label("Select bulk3", exact=True).uncheck()
    expect(bar).to_contain_text("4 selected")
    page.get_by_role("button", name="End 4 sessions").click()
    dialog.get_by_role("button", name="End 4 sessions").click()
    expect(bar).to_be_hidden()
    expect(page.locator("tr[data-session]")).to_have_count(1, timeout=30_000)
    assert names(page) == ["bulk3"]
    for session in (made[0], made[1], made[2], made[4]):
        assert api.wait_state(session, "FINISHED")["end"]["text"] == "Ended by alice."


def test_search_filter_and_order(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    for name in ("betatrain", "alphatrain", "gammaplot"):
        api.launch(name=name, **SMALL)
    expect(page.locator("tr[data-session]")).to_have_count(3)
    page.evaluate("window.neverReloaded = true")
    box = page.get_by_role("searchbox")
    box.press_sequentially("TRAIN")
    expect(page.locator("tr[data-session]")).to_have_count(2)
    assert page.url.endswith("q=TRAIN")
    expect(box).to_be_focused()
    polled(page)
    expect(box).to_have_value("TRAIN")
    assert set(names(page)) == {"betatrain", "alphatrain"}
    page.get_by_role("link", name="Session", exact=True).click()
    expect(page.get_by_role("columnheader", name="Session")).to_have_attribute(
        "aria-sort", "ascending"
    )
    assert names(page) == ["alphatrain", "betatrain"]
    expect(page.get_by_label("Sort by")).to_have_value("name")
    picture(page, "list-searched")
    clean_in_both_themes(page)
    fits(page, 1280, 800, 390, 320)
    page.get_by_role("link", name="Session", exact=True).click()
    expect(page.locator("tr[data-session]").first).to_have_attribute("data-name", "betatrain")
    assert page.evaluate("window.neverReloaded")
    page.reload()
    assert names(page) == ["betatrain", "alphatrain"]
    expect(box).to_have_value("TRAIN")
    box.fill("tr%n")
    expect(page.get_by_text("Nothing here matches")).to_be_visible()
    picture(page, "list-nothing-found")
    clean_in_both_themes(page)
    page.get_by_role("link", name="Show all").click()
    expect(page.locator("tr[data-session]")).to_have_count(3)
    expect(box).to_have_value("")


def test_rows_appear_and_change_without_reloading(
    log_in: LogIn, api: Api, cluster: Cluster
) -> None:
    page = log_in(WHO)
    page.evaluate("window.neverReloaded = true")
    api.launch(name="itself1", **SMALL)
    row = row_of(page, "itself1")
    expect(row).to_have_attribute("data-state", re.compile("PENDING|STARTING|RUNNING"))
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    expect(page.locator("#announce")).to_contain_text("itself1 is running")
    note = page.get_by_text("Connection lost")
    expect(note).to_be_hidden()
    cluster.daemon("stop", "portal", "web")
    try:
        expect(note).to_be_visible(timeout=20_000)
        expect(row).to_have_count(1)
        clean_in_both_themes(page)
        page.get_by_role("button", name="End itself1").click()
        page.get_by_role("button", name="End session").click()
        expect(page.get_by_role("alert")).to_contain_text("It may not have been ended.")
    finally:
        cluster.daemon("start", "portal", "web")
    expect(note).to_be_hidden(timeout=30_000)
    expect(row).to_have_attribute("data-state", "RUNNING")
    assert page.evaluate("window.neverReloaded")


def test_new_sessions_are_highlighted(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    made = [api.launch(name=f"fresh{number}", **SMALL)["id"] for number in range(2)]
    api.launch(name="notfresh", **SMALL)
    page.goto(f"{page.url.partition('?')[0]}?new={','.join(made)}")
    expect(page.locator("tr.fresh")).to_have_count(2)
    expect(page.locator("#announce")).to_contain_text("Launched: ")
    assert page.url.endswith("/sessions")
    polled(page, 1)
    expect(page.locator("tr.fresh")).to_have_count(2)
    expect(page.locator("tr.fresh")).to_have_count(0, timeout=10_000)


FILL = """
import json, sqlite3, sys
number, template, undo = json.loads(sys.argv[1])
db = sqlite3.connect("/var/lib/slipway/slipway.db", timeout=30)
if undo:
    db.execute("delete from session where batch = 'filled'")
else:
    names = [row[1] for row in db.execute("pragma table_info(session)")]
    row = dict(zip(names, db.execute("select * from session where id = ?", [template]).fetchone()))
    rows = [{**row, "id": f"{n * 7919 % 2**31:032x}", "batch": "filled", "name": f"filled{n:05}",
             "cleaned": 1, "state": "FINISHED", "job_id": str(900000 + n),
             "created": f"2026-01-{1 + n % 28:02} 10:{n // 60 % 60:02}:{n % 60:02}.{n:06}"}
            for n in range(number)]
    marks = ", ".join("?" * len(names))
    db.executemany(f"insert into session values ({marks})", [[r[n] for n in names] for r in rows])
db.commit()
"""


@contextmanager
def filled(cluster: Cluster, template: str, number: int) -> Iterator[None]:
    """Many more sessions like this one, in the portal's database only."""

    def fill(undo: bool) -> None:
        words = ["python3", "-c", FILL, json.dumps([number, template, undo])]
        cluster.run("portal", *words, seconds=120)

    fill(False)
    try:
        yield
    finally:
        fill(True)


def test_pages_and_search_of_ten_thousand_rows(log_in: LogIn, api: Api, cluster: Cluster) -> None:
    template = api.running(name="template1", **SMALL)["id"]
    page = log_in(WHO)
    with filled(cluster, template, 10_000):
        page.get_by_role("link", name="Finished").click()
        expect(page.locator("tr[data-session]")).to_have_count(50)
        seen = set(shown(page))
        for _ in range(3):
            first = page.locator("tr[data-session]").first
            before = first.get_attribute("data-session") or ""
            page.get_by_role("link", name="Older sessions").click()
            expect(first).not_to_have_attribute("data-session", before)
            assert not seen & set(shown(page))
            seen |= set(shown(page))
        page.get_by_role("searchbox").fill("filled09999")
        expect(page.locator("tr[data-session]")).to_have_count(1)
