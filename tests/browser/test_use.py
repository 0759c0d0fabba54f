"""The bars rise at launch and drop by the same amount at the end; limits stand by the fields."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.browser.test_researcher import STARTS, fill_in, go, launch
from tests.client import Api
from tests.slurm.conftest import MakeApi

WHO = "bob"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client, to clean up."""
    found = make_api(WHO)
    yield found
    found.launched += [session["id"] for session in found.list(state="running")]
    found.clean()


def shows(page: Page, cores: int, memory: int) -> None:
    """Wait until the bars show these cores and MiB as the user's own, without reloading."""
    for name, mine in (("cpus", cores), ("memory", memory)):
        meter = page.locator(f"[data-meter={name}]")
        expect(meter).to_have_attribute("data-mine", str(mine), timeout=STARTS)


def width(page: Page, meter: str, bar: int) -> float:
    """The filled share of a bar, in percent."""
    fill = page.locator(f"[data-meter={meter}] .fill").nth(bar)
    return float(fill.get_attribute("width") or "nan")


def test_bars_rise_at_launch_and_drop_at_the_end(log_in: LogIn, api: Api, picture: Picture) -> None:
    page = log_in(WHO)
    shows(page, 0, 0)
    assert width(page, "cpus", 0) == 0
    launch(page, "bars1")
    shows(page, 1, 600)
    assert width(page, "cpus", 0) == pytest.approx(100 / 3, abs=0.1)
    assert width(page, "memory", 0) == pytest.approx(60000 / 3072, abs=0.1)
    launch(page, "bars2", "1 GB")
    shows(page, 2, 1624)
    assert width(page, "cpus", 0) == pytest.approx(200 / 3, abs=0.1)
    meter = page.locator("[data-meter=cpus]")
    expect(meter).to_contain_text("2 of 3 you may have")
    expect(page.locator("[data-meter=memory]")).to_contain_text("1.6 GB of 3 GB")
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
    assert width(page, "memory", 0) == 0


def test_the_effective_limit_is_shown_and_enforced(log_in: LogIn, api: Api) -> None:
    page = log_in(WHO)
    fill_in(page, "toomuch1", "3.2 GB")
    expect(page.locator("#hint-resources-memory")).to_have_text("up to 3 GB")
    expect(page.locator("[data-bound=cpus]")).to_have_text("2")
    go(page)
    refused = page.locator("#error-resources-memory")
    expect(refused).to_contain_text("You may use 3 GB at once (QOS normal, MaxTRESPerUser)")
    assert api.list(state="running") == []
