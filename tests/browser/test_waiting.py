"""Why a session waits, if the researcher's own sessions hold what it needs."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_sessions import row_of
from tests.support.client import Api

STARTS = 60_000


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The researcher's API client."""
    return researcher("alice")


def test_my_own_sessions_are_named_and_ending_one_starts_the_next(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    share: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m", "fgpu": 1}}
    for name in ("gpuone", "gputwo"):
        api.running(name=name, **share)
    api.launch(name="gputhree", **share)
    page = log_in("alice")
    row = row_of(page, "gputhree")
    text = "2 of 2 fGPU are in use, both by you (gpuone, gputwo). End one to start this now."
    expect(row).to_contain_text(text, timeout=STARTS)
    expect(page.locator("#tabs [aria-current]")).to_contain_text("Running 2 · waiting 1")
    picture(page, "list-waiting")
    page.get_by_role("button", name="End gpuone").click()
    page.get_by_role("button", name="End session").click()
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)


def test_a_limit_is_told_in_figures(log_in: LogIn, api: Api) -> None:
    for name in ("memone", "memtwo"):
        api.running(name=name, resources={"cpus": 1, "memory": "1g"})
    api.launch(name="memthree", resources={"cpus": 1, "memory": "1536m"})
    page = log_in("alice")
    text = "You use 2 of your 3 GB (memone, memtwo), this needs 1.5 GB. End one to start this now."
    expect(row_of(page, "memthree")).to_contain_text(text, timeout=STARTS)
