"""The main ways through the portal in Debian's Firefox: login, launch, cell, terminal, files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Researcher
from tests.browser.firefox import Firefox, FirefoxError, Window, firefox
from tests.support.browser_files import DROP_FILE
from tests.support.browser_wizard import PYTHON
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT

WHO = "bob"
NAME = "firefox1"
CELL = ".jp-Notebook-cell .cm-content"
PICTURES = ROOT / "build" / "screenshots" / "firefox"


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same person's API client, to check behind the pages and to clean up."""
    return researcher(WHO)


@pytest.fixture
def fox(tmp_path: Path) -> Iterator[Firefox]:
    """A browser of this test's own."""
    with firefox(tmp_path) as found:
        yield found


def _log_in(window: Window, cluster: Cluster) -> None:
    window.go(f"{cluster.url}/sessions")
    window.fill("input[name=username]", WHO)
    window.fill("input[name=password]", cluster.password(WHO))
    window.type("Enter")
    window.shows("Start a session")


def _launch(window: Window) -> None:
    window.click("a", "Start a session")
    window.click(f".chip-pick:has([aria-label='{PYTHON}'])")
    window.fill("input[name=name]", NAME)
    window.click("button", "Confirm and launch")
    window.click("button", "Launch without a folder")
    window.shows("Running", f"tr[data-name={NAME}]")


def _run_cell(lab: Window, code: str) -> None:
    lab.click(".jp-LauncherCard", "Python", 90)
    lab.shows("", ".jp-Notebook-ExecutionIndicator[data-status=idle]")
    # JupyterLab drops the first keys while its notebook is still loading.
    wait_for("the cell's text", lambda: _types_cell(lab, code), 60, 1.0)
    wait_for("the cell to run", lambda: _has_run(lab), 60, 2.0)


def _types_cell(lab: Window, code: str) -> bool:
    lab.click(CELL)
    # Outside the editor, letters are commands: "r" makes the cell a raw one.
    if not lab.run("() => Boolean(document.activeElement.closest('.cm-content'))"):
        return False
    lab.chord("Control", "a")
    lab.type(code)
    return lab.text(CELL) == code


def _has_run(lab: Window) -> bool:
    if lab.text(".jp-OutputArea-output").strip():
        return True
    lab.chord("Control", "Enter")
    return False


def _types(terminal: Window, line: str, answer: str) -> bool:
    try:
        terminal.run("() => window.term.focus()")
        terminal.type(line, "Enter")
        return bool(wait_for("the answer", lambda: answer in _screen(terminal), 5))
    except (FirefoxError, AssertionError):
        return False


def _screen(terminal: Window) -> str:
    return str(
        terminal.run(
            """() => { const b = window.term.buffer.active, lines = [];
            for (let i = 0; i < b.length; i++) lines.push(b.getLine(i).translateToString(true));
            return lines.join('\\n'); }"""
        )
    )


def test_from_the_login_to_a_running_cell_and_the_end(
    fox: Firefox, cluster: Cluster, api: Api
) -> None:
    page = fox.windows()[0]
    _log_in(page, cluster)
    _launch(page)
    page.picture(PICTURES / "sessions.png")

    lab = fox.opened_by(page, f"tr[data-name={NAME}] button", "JupyterLab")
    _run_cell(lab, "print(6*7)")
    lab.shows("42", ".jp-OutputArea-output")
    lab.picture(PICTURES / "jupyterlab.png")

    terminal = fox.opened_by(page, f"tr[data-name={NAME}] button", "Terminal")
    wait_for("the terminal", lambda: _types(terminal, "echo $((6*7))", "\n42"), 60)
    terminal.picture(PICTURES / "terminal.png")

    page.click(f"tr[data-name={NAME}] button", f"End {NAME}")
    page.click("dialog button", "End session")
    wait_for("the row to go", lambda: not page.text(f"tr[data-name={NAME}]"))
    assert [s["name"] for s in api.list(state="finished")][:1] == [NAME]


def test_a_file_is_uploaded_edited_and_deleted(fox: Firefox, cluster: Cluster) -> None:
    def login(script: str) -> str:
        return cluster.run("login", "bash", "-c", script, user=WHO)

    login("rm -rf ~/foxes; mkdir ~/foxes")
    page = fox.windows()[0]
    _log_in(page, cluster)
    page.go(f"{cluster.url}/files/home/foxes")
    page.shows("This folder is empty")
    # Sent in pieces of 5 MiB.
    page.run(f"text => ({DROP_FILE})(['long.txt', text.repeat(1_000_000), ''])", "0123456789")
    page.shows("long.txt", "#folder")
    assert login("stat -c %s ~/foxes/long.txt") == "10000000\n"
    page.run(f"text => ({DROP_FILE})(['short.txt', text, ''])", "first\n")
    page.click("#folder a", "short.txt")
    page.shows("first", ".text-view")
    page.picture(PICTURES / "file.png")
    page.click("button", "Edit")
    page.click(".file-editor")
    page.chord("Control", "End")
    page.type("second")
    page.chord("Control", "s")
    page.shows("Saved at", "[data-file-note]")
    assert login("cat ~/foxes/short.txt") == "first\nsecond"
    page.go(f"{cluster.url}/files/home/foxes")
    page.picture(PICTURES / "files.png")
    page.click("#folder tr[data-name='short.txt'] .c-size")
    page.type("Delete")
    page.click("#ask-delete button", "Delete for good")
    wait_for("the row to go", lambda: not page.text("#folder tr[data-name='short.txt']"))
    assert login("ls ~/foxes; rm -r ~/foxes") == "long.txt\n"
