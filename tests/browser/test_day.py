"""Fifteen tasks of a researcher's day, in order, each looked at in both themes and three widths.

Every page is checked with axe-core in both themes, and must not be wider than its window. With
SCREENSHOTS=1, pictures go to build/screenshots/day.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import COLOURS, THEMES, settled, show, violations
from tests.browser.conftest import LogIn
from tests.slurm.conftest import MakeApi
from tests.support.browser_apps import (
    LIMITS,
    expect_output,
    new_notebook,
    open_app,
    run_cell,
    type_line,
)
from tests.support.browser_wizard import PYTHON
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT

WHO = "alice"
STARTS = 60_000
WIDTHS = (1440, 1024, 390)
FOLDER = "climate-2026"
PICTURES = ROOT / "build" / "screenshots" / "day"
GREEDY = "x = bytearray(900 * 1024**2)\nfor i in range(0, len(x), 4096): x[i] = 1"


@dataclass
class Camera:
    """Takes the pictures of one task after the other, and collects what is wrong on the pages."""

    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    wrong: list[str] = field(default_factory=list)

    def look(self, page: Page, task: str) -> None:
        """Take a page in both themes and all widths."""
        name = f"{next(self.numbers):02}-{task}"
        before = page.viewport_size
        for theme in THEMES[::-1]:
            show(page, theme)
            rules = () if theme == THEMES[0] else COLOURS
            self.wrong += [f"{name} {theme}: {one}" for one in violations(page, rules=rules)]
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                self._take(page, f"{name}-{theme}-{width}")
        if before:
            page.set_viewport_size(before)

    def _take(self, page: Page, name: str) -> None:
        settled(page)
        if os.environ.get("SCREENSHOTS"):
            PICTURES.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.wrong.append(f"{name}: wider than the window")


@pytest.fixture
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """The same person's API client, to check behind the pages and to clean up."""
    cluster.shell("login", f"rm -rf /home/{WHO}/storage", user=WHO)
    found = make_api(WHO)
    yield found
    found.clean_all()
    cluster.shell("login", f"rm -rf /home/{WHO}/storage", user=WHO)


def _next(page: Page) -> None:
    page.get_by_role("button", name="Next", exact=True).click()


def _row(page: Page, name: str) -> Locator:
    return page.locator(f"tr[data-name={name}]")


def _runs(page: Page, name: str) -> Locator:
    expect(_row(page, name)).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    return _row(page, name)


def _start(page: Page, name: str, memory: str = "0.6", **fields: str) -> None:
    """Fill in the wizard from the Sessions page, and launch with the folders of the last time."""
    page.get_by_role("link", name="Start a session").first.click()
    page.get_by_label("Session name").fill(name)
    page.locator(".steps [data-go=resources]").click()
    page.get_by_label("Memory", exact=True).fill(memory)
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(value)
    page.get_by_role("button", name="Confirm and launch").click()
    page.wait_for_url("**/sessions*")


def _end(page: Page, name: str) -> None:
    _row(page, name).get_by_role("button", name=f"End {name}").click()
    page.get_by_role("button", name="End session").click()
    expect(_row(page, name)).to_have_count(0, timeout=15_000)


@pytest.mark.timeout(600)  # 132 s on a machine of its own
def test_fifteen_tasks(log_in: LogIn, api: Api, cluster: Cluster) -> None:
    camera = Camera()
    page = log_in(WHO, viewport={"width": 1440, "height": 900})

    # 1 The empty page of somebody new, and the help.
    camera.look(page, "empty")
    page.get_by_role("link", name="Help").first.click()
    camera.look(page, "help")
    page.goto(f"{cluster.url}/sessions")

    # 2 An environment and a name.
    page.get_by_role("link", name="Start a session").first.click()
    page.get_by_role("radio", name=PYTHON, exact=True).check()
    page.get_by_label("Session name").fill("morning1")
    camera.look(page, "environment")
    _next(page)

    # 3 A storage folder for what is to be kept.
    page.get_by_label("New storage folder").fill(FOLDER)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label(re.compile(FOLDER)).first).to_be_checked()
    camera.look(page, "folders")
    _next(page)

    # 4 Resources and a time limit, as people write them.
    page.get_by_label("Memory", exact=True).fill("0.6")
    page.get_by_label("Time limit", exact=True).fill("1:30")
    camera.look(page, "resources")
    _next(page)

    # 5 The review, and the launch.
    expect(page.locator(".review-list")).to_contain_text("1 h 30 min")
    camera.look(page, "review")
    page.get_by_role("button", name="Confirm and launch").click()

    # 6 JupyterLab opens itself, although it was clicked before the session ran.
    row = _row(page, "morning1")
    lab = open_app(page, row, "JupyterLab")
    new_notebook(lab)
    _runs(page, "morning1")
    camera.look(page, "running")

    # 7 A cell sees the limits, and the notebook is saved where it is kept.
    expect(run_cell(lab, LIMITS)).to_have_text(re.compile(r"memory \d+ cores 1\n"), timeout=STARTS)
    lab.keyboard.press("Control+S")
    lab.get_by_role("button", name="Rename and Save").click()
    saved = f"test -s /home/{WHO}/storage/{FOLDER}/Untitled.ipynb && echo saved"
    wait_for("the notebook in the folder", lambda: "saved" in _attempt(cluster, saved), 30, 1.0)

    # 8 The terminal starts in the same folder.
    terminal = open_app(page, row, "Terminal")
    expect(terminal.locator(".xterm-screen")).to_be_visible(timeout=STARTS)
    type_line(terminal, "ls")
    expect_output(terminal, "Untitled.ipynb")
    camera.look(terminal, "terminal")

    # 9 All facts of the session on its page.
    page.bring_to_front()
    row.get_by_role("link", name="morning1", exact=True).click()
    expect(page.locator("main")).to_contain_text(FOLDER)
    camera.look(page, "session")

    # 10 SSH from one's own computer.
    page.goto(f"{cluster.url}/sessions/{api.list(state='running')[0]['id']}/ssh")
    camera.look(page, "ssh")
    page.goto(f"{cluster.url}/sessions")

    # 11 More time.
    before = api.list(state="running")[0]["deadline"]
    row.get_by_role("button", name="More for morning1").click()
    page.get_by_role("button", name="Extend by 1 h").click()
    wait_for("the later end", lambda: api.list(state="running")[0]["deadline"] > before, 30)

    # 12 A cell that needs too much memory: what was stopped, and what to do.
    lab.bring_to_front()
    editor = lab.locator(".jp-Notebook-cell .cm-content").last
    editor.fill(GREEDY)
    editor.press("Control+Enter")
    page.bring_to_front()
    expect(row).to_contain_text("wanted more than", timeout=STARTS)
    camera.look(page, "memory")

    # 13 Three requests where two fit: the third says whom it waits for, and starts by itself.
    for name in ("second2", "third3"):
        _start(page, name)
    _runs(page, "third3")
    _start(page, "waits4")
    expect(_row(page, "waits4")).to_have_attribute("data-state", "PENDING")
    expect(_row(page, "waits4")).to_contain_text(re.compile("end one|You use"), timeout=20_000)
    camera.look(page, "waiting")
    _end(page, "second2")
    _runs(page, "waits4")

    # 14 The end, which says what stays; the file is there; launched again in one click.
    row.get_by_role("button", name="End morning1").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"{FOLDER} stays.")
    camera.look(page, "end")
    page.get_by_role("button", name="End session").click()
    expect(row).to_have_count(0, timeout=15_000)
    assert "saved" in _attempt(cluster, saved)
    page.get_by_role("link", name=re.compile("^Finished")).click()
    camera.look(page, "finished")

    # 15 The log, and the account.
    page.goto(f"{cluster.url}/sessions/{api.list(state='finished')[0]['id']}/log")
    camera.look(page, "log")
    page.goto(f"{cluster.url}/account")
    camera.look(page, "account")
    assert camera.wrong == []


def _attempt(cluster: Cluster, command: str) -> str:
    return cluster.attempt("exec", "--user", WHO, "login", "--", "sh", "-c", command).stdout
