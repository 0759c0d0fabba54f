"""The list from phones to wide screens, its filters, and where the keyboard goes on."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_sessions import row_of
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
STARTS = 60_000
SMALL: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The researcher's API client: launches independently of the page, and cleans up."""
    return researcher(WHO)


def ended(api: Api, number: int) -> None:
    """Make ended sessions."""
    while number > 0:
        made = api.launch_all(count=min(number, 9), **SMALL)
        api("POST", "/sessions/end", json={"ids": [one["id"] for one in made]})
        number -= len(made)


def middle_height(page: Page) -> int:
    """The median height of the rows, in pixels."""
    rows = page.locator("tr[data-session]")
    heights: list[int] = rows.evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    return sorted(heights)[len(heights) // 2]


def test_ended_sessions_are_compact(log_in: LogIn, api: Api, picture: Picture) -> None:
    ended(api, 27)
    page = log_in(WHO, viewport={"width": 1024, "height": 800})
    page.goto(page.url.partition("?")[0] + "?state=finished")
    rows = page.locator("tr[data-session]")
    expect(rows.nth(26)).to_be_visible(timeout=30_000)  # the last ones may still be ending
    # 27 rows in about 1600 pixels, once it is known how they ended.
    wait_for("low rows", lambda: middle_height(page) <= 60)
    first = rows.first
    expect(first.get_by_role("button", name="again")).to_contain_text("Launch again")
    picture(page, "list-ended-1024")
    clean_in_both_themes(page)
    fits(page, 1440, 1280, 1024, 900, 760, 390, 320)
    page.set_viewport_size({"width": 390, "height": 844})
    # A busy browser updates the layout a moment later.
    wait_for("rows of a narrow window", lambda: middle_height(page) <= 76, 3)
    picture(page, "list-ended-390")


def has_columns(page: Page, number: int) -> bool:
    """Whether so many columns of the list have a width."""
    heads = page.locator("thead th")
    shown = heads.evaluate_all("heads => heads.filter((head) => head.offsetWidth).length")
    return bool(shown == number)


def test_five_columns_down_to_760_pixels(log_in: LogIn, api: Api, picture: Picture) -> None:
    api.running(name="columns5", **SMALL)
    page = log_in(WHO, viewport={"width": 1024, "height": 800})
    expect(row_of(page, "columns5")).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    for width, columns in ((1280, 8), (1024, 6), (760, 6)):  # and the boxes to select
        page.set_viewport_size({"width": width, "height": 800})
        wait_for(f"{columns} columns", partial(has_columns, page, columns), 3)
    tops = page.locator(".usage .meter").evaluate_all(
        "meters => meters.map((meter) => Math.round(meter.getBoundingClientRect().top))"
    )
    assert len(set(tops)) == 1  # in one row
    picture(page, "list-760")
    clean_in_both_themes(page)


OTHER_DAY = """async () => {
  const times = document.querySelectorAll("time[datetime]");
  for (const time of times) time.dateTime = "2026-09-28T22:58:00Z";
  const page = await import(document.querySelector("script[type=module]").src);
  page.refreshTimes();
  const wide = document.documentElement.scrollWidth;
  return [innerWidth, wide, document.querySelector("#rows").innerText];
}"""


def fits_on_other_days(page: Page, width: int) -> bool:
    """Whether the list is no wider than the window. One step, since polls restore the times."""
    window, wide, text = page.evaluate(OTHER_DAY)
    return bool(window == width and wide <= width and re.search(r"Sep\s2[89]", text))


WIDTHS = (*range(320, 760, 40), *range(760, 1480, 20))


@pytest.mark.parametrize("who", [WHO, "admin"])
@pytest.mark.parametrize("state", ["running", "finished"])
def test_times_on_other_days_fit(
    cluster: Cluster, log_in: LogIn, api: Api, picture: Picture, who: str, state: str
) -> None:
    """From the evening on, sessions end on the next day: "Nov 23, 12:05 AM" instead of a time."""
    session = api.running(name="nightinthelab", **SMALL)
    if state == "finished":
        api.stop(session["id"])
        api.wait_state(session["id"], "FINISHED")
    page = log_in(who, viewport={"width": 1280, "height": 800})
    # Alone: other tests' sessions with long names would take the width.
    page.goto(f"{cluster.url}/sessions?state={state}&q=nightinthelab")
    row = row_of(page, "nightinthelab").first
    expect(row).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        wait_for(f"{width} pixels to be enough", partial(fits_on_other_days, page, width), 5)
        if width in (1280, 1020, 780, 320):
            picture(page, f"list-other-day-{who}-{state}-{width}")
        if width >= 1020 and state == "finished":
            assert row.evaluate("row => row.offsetHeight") <= 60, width


def test_filters_are_behind_one_button_on_phones(log_in: LogIn, picture: Picture) -> None:
    page = log_in(WHO, viewport={"width": 390, "height": 844})
    expect(page.get_by_role("searchbox")).to_be_visible()
    expect(page.get_by_label("Status", exact=True)).to_be_hidden()
    page.locator("#filter-toggle summary").click()
    expect(page.get_by_label("Status", exact=True)).to_be_visible()
    picture(page, "list-filters-390")
    clean_in_both_themes(page)


def test_filters_by_status_and_day_and_counts_that_match(log_in: LogIn, api: Api) -> None:
    done = api.launch(name="findable1", **SMALL)
    api.stop(done["id"])
    api.wait_state(done["id"], "FINISHED")
    page = log_in(WHO)
    page.get_by_role("searchbox").fill("findable1")
    expect(page.get_by_text("Nothing here matches")).to_be_visible()
    page.get_by_role("link", name="1 in Finished matches").click()
    expect(row_of(page, "findable1")).to_contain_text("Ended by you.")
    page.get_by_label("Status", exact=True).select_option("time_limit")
    expect(row_of(page, "findable1")).to_have_count(0)
    page.get_by_label("Status", exact=True).select_option("ended_on_request")
    expect(row_of(page, "findable1")).to_have_count(1)
    page.get_by_label("Launched", exact=True).select_option("7")
    expect(row_of(page, "findable1")).to_have_count(1)
    assert "days=7" in page.url
    page.get_by_label("Status", exact=True).select_option("waiting")
    expect(page.locator("#tabs [aria-current]")).to_contain_text("Running")


def test_the_keyboard_goes_on_at_new_and_next_rows(log_in: LogIn, api: Api) -> None:
    older = api.running(name="older1", **SMALL)
    page = log_in(WHO)
    row = row_of(page, "older1")
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    page.goto(f"{page.url.partition('?')[0]}?new={older['id']}")
    expect(row.get_by_role("button", name="JupyterLab")).to_be_focused()
    api.launch(name="newer1", **SMALL)
    expect(row_of(page, "newer1")).to_have_count(1)
    page.get_by_role("button", name="End newer1").click()
    page.get_by_role("button", name="End session").click()
    expect(row.get_by_role("button", name="JupyterLab")).to_be_focused()
    expect(row_of(page, "newer1")).to_have_count(0, timeout=20_000)
    expect(row.get_by_role("button", name="JupyterLab")).to_be_focused()
    page.get_by_role("button", name="End older1").click()
    page.get_by_role("button", name="End session").click()
    expect(page.locator(".deck .start")).to_be_focused()


def test_a_lost_connection_moves_nothing(log_in: LogIn, api: Api) -> None:
    api.running(name="steady1", **SMALL)
    page = log_in(WHO)
    row = row_of(page, "steady1")
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    top = row.bounding_box()
    page.context.set_offline(True)
    expect(page.get_by_text("Connection lost")).to_be_visible(timeout=20_000)
    assert row.bounding_box() == top
    page.get_by_role("button", name="End steady1").click()
    page.get_by_role("button", name="End session").click()
    trouble = page.locator("#trouble")
    expect(trouble).to_contain_text("It may not have been ended. The list will show it")
    page.context.set_offline(False)
    expect(trouble).to_be_hidden(timeout=20_000)
    expect(page.get_by_text("Connection lost")).to_be_hidden()
