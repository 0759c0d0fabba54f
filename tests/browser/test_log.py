"""The log of a session: follow, search, download, and open at the end however long it is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.browser.logs import find_a_hundred
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
SMALL: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client: launches, and cleans up."""
    found = make_api(WHO)
    yield found
    found.clean()


@pytest.fixture
def log_of(cluster: Cluster, api: Api, log_in: LogIn) -> Callable[[int], Page]:
    """Opens the page of a log with this number of lines."""

    def open_page(lines: int) -> Page:
        session = api.running(name="logged1", **SMALL)["id"]
        script = (
            f"import sys; sys.stdout.writelines('line %07d: loss 0.%06d\\n'"
            f" % (n, n * 7919 % 999983) for n in range({lines}))"
        )
        file = f"$HOME/.slipway/logs/{session}.log"
        cluster.shell("login", f'python3 -c "{script}" > {file}', user=WHO)
        page = log_in(WHO)
        page.goto(f"{cluster.url}/sessions/{session}/log")
        return page

    return open_page


def test_the_log_follows_searches_and_downloads(
    cluster: Cluster, log_of: Callable[[int], Page], picture: Picture, tmp_path: Any
) -> None:
    page = log_of(3000)
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 0002999")
    session = page.url.split("/")[-2]
    cluster.shell("login", f"echo größe-is-new >> $HOME/.slipway/logs/{session}.log", user=WHO)
    expect(log).to_contain_text("größe-is-new")
    at_end = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 5"
    wait_for("its end in sight", lambda: log.evaluate(at_end), 10)
    box = find_a_hundred(page)
    page.get_by_role("button", name="Next match").click()
    box.press("Shift+Enter")
    box.press("Shift+Enter")
    expect(page.locator("#find-count")).to_have_text("100 of 100")
    assert page.evaluate("CSS.highlights.get('log-current').size") == 1
    in_sight = """() => {
        const at = [...CSS.highlights.get('log-current')][0].getBoundingClientRect();
        const box = document.getElementById('log').getBoundingClientRect();
        return at.top > box.top && at.bottom < box.bottom; }"""
    wait_for("the match in sight", lambda: page.evaluate(in_sight), 10)
    picture(page, "log-search")
    clean_in_both_themes(page)
    fits(page, 1280, 390, 320)
    box.fill("no such words")
    expect(page.locator("#find-count")).to_have_text("Not found")
    page.get_by_label("Wrap lines").uncheck()
    expect(log).to_have_class(re.compile("unwrapped"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    file = tmp_path / "log"
    download.value.save_as(file)
    text = file.read_text()
    assert (text.count("\n"), text.endswith("größe-is-new\n")) == (3001, True)


def first_line(log: Locator) -> int:
    """The number of the first line that is loaded."""
    return int(str(log.locator("pre").first.evaluate("(pre) => pre.textContent.slice(5, 12)")))


def test_a_log_of_50_mb_opens_at_once(log_of: Callable[[int], Page], picture: Picture) -> None:
    lines = 1_900_000
    page = log_of(lines)
    began = time.monotonic()
    page.reload()
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"line {lines - 1:07}")
    assert time.monotonic() - began < 10
    here = [first_line(log)]
    for _ in range(4):
        page.get_by_role("button", name="Load earlier lines").click()
        wait_for("earlier lines", lambda: first_line(log) < here[-1], 10)
        expect(log).to_contain_text(f"line {here[-1] - 1:07}")  # nothing is missing in between
        here.append(first_line(log))
    assert not page.get_by_label("Follow").is_checked()
    picture(page, "log-earlier")
    page.get_by_role("searchbox").fill("loss")
    expect(page.locator("#find-count")).to_have_text(f"{lines - here[-1]} found in this part")
    log.evaluate("(log) => { log.scrollTop = 0 }")
    clean_in_both_themes(page, ".log-earlier")
