"""The bars rise at launch and drop by the same amount at the end; limits stand by the fields."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_wizard import STARTS, fill_in, launch
from tests.support.client import Api

WHO = "bob"


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same researcher's API client, to clean up."""
    return researcher(WHO)


def shows(page: Page, cores: int, memory: int) -> None:
    """Wait until the bars show these cores and MiB as the user's own, without reloading."""
    for name, mine in (("cpus", cores), ("memory", memory)):
        meter = page.locator(f"[data-meter={name}]")
        expect(meter).to_have_attribute("data-mine", str(mine), timeout=STARTS)


def width(page: Page, meter: str, part: str = "mine") -> float:
    """The length of a part of a bar, in percent; 0 if it has none."""
    found = page.locator(f"[data-meter={meter}] rect.part-{part}")
    return float(found.get_attribute("width") or "nan") if found.count() else 0.0


def test_bars_rise_at_launch_and_drop_at_the_end(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    shows(page, 0, 0)
    assert width(page, "cpus") == 0
    launch(page, "bars1")
    shows(page, 1, 600)
    assert width(page, "cpus") == pytest.approx(100 / 3, abs=0.1)
    assert width(page, "memory") == pytest.approx(60000 / 3072, abs=0.1)
    launch(page, "bars2", "1 GB")
    shows(page, 2, 1624)
    assert width(page, "cpus") == pytest.approx(200 / 3, abs=0.1)
    meter = page.locator("[data-meter=cpus]")
    expect(meter).to_contain_text("2 of 3 · 1 free")
    expect(page.locator("[data-meter=memory]")).to_contain_text("1.59 GB of 3 GB · 1.41 GB free")
    picture(page, "bars-light")
    assert violations(page, ".usage") == []
    page.emulate_media(color_scheme="dark")
    picture(page, "bars-dark")
    assert violations(page, ".usage") == []
    for size in (800, 390, 320):
        page.set_viewport_size({"width": size, "height": 844})
        picture(page, f"bars-{size}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_role("button", name="End bars2").click()
    page.get_by_role("button", name="End session").click()
    shows(page, 1, 600)
    page.get_by_role("button", name="End bars1").click()
    page.get_by_role("button", name="End session").click()
    shows(page, 0, 0)
    assert width(page, "memory") == 0


def test_the_effective_limit_is_shown_and_enforced(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    fill_in(page, "toomuch1", "3.2 GB")
    expect(page.locator("#hint-resources-memory")).to_have_text("up to 3 GB")
    expect(page.locator("[data-bound=cpus]")).to_have_text("2")
    page.get_by_role("button", name="Confirm and launch").click()
    refused = page.locator("#error-resources-memory")
    expect(refused).to_contain_text(
        "3.2 GB is too much: you may use 3 GB at once (QOS normal, MaxTRESPerUser)"
    )
    assert api.list(state="running") == []


def test_the_legend_gives_both_bars_as_figures_by_keyboard(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    api.running(resources={"cpus": 2, "memory": "600m"}, resource_group="main")
    shows(page, 2, 600)
    page.get_by_label("Your share of").select_option("short")
    shows(page, 0, 0)
    assert width(page, "cpus", "elsewhere") > 0
    meter = page.locator("[data-meter=cpus]")
    expect(meter).to_have_attribute("data-elsewhere", re.compile("[12]"))
    expect(page.locator("tr[data-session]")).to_have_count(1)  # the list is not filtered
    page.get_by_label("Your share of").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    legend = page.get_by_role("group", name="About your share")
    expect(legend).to_be_visible()
    for words in ("Yours in short", "Yours in other groups", "Free for you now", "Taken by others"):
        expect(legend.get_by_role("row", name=words)).to_be_visible()
    expect(legend).to_contain_text("You may use 3 cores and 3 GB at once in all groups together.")
    expect(legend).to_contain_text("The largest node in short has 2 cores")
    with page.expect_response(lambda answer: "/sessions/rows" in answer.url):
        pass
    expect(legend).to_be_visible()  # an update closes nothing
    picture(page, "bars-legend")
    assert violations(page, ".usage") == []
    page.keyboard.press("Escape")
    expect(legend).to_be_hidden()
