"""Notebooks and terminals in a browser."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.support.browser_wizard import STARTS
from tests.support.cluster import wait_for

# Both cgroup layouts, as a curious user would read them.
LIMITS = """
from pathlib import Path
cg = Path('/sys/fs/cgroup')
memory = next(p for p in (cg/'memory/memory.limit_in_bytes', cg/'memory.max') if p.exists())
cores = next(p for p in (cg/'cpuset/cpuset.cpus', cg/'cpuset.cpus.effective') if p.exists())
print('memory', memory.read_text().strip(), 'cores', len(cores.read_text().strip().split(',')))
"""


def open_app(page: Page, row: Locator, name: str) -> Page:
    """Click an app's button and return the new window."""
    with page.context.expect_page() as opened:
        row.get_by_role("button", name=name).first.click()
    return opened.value


def run_cell(lab: Page, code: str) -> Locator:
    """Type into the last cell, run it with Ctrl-Enter, and return its output."""
    cell = lab.locator(".jp-Notebook-cell").last
    editor = cell.locator(".cm-content")
    editor.click()
    expect(lab.locator(".jp-Notebook.jp-mod-editMode")).to_be_visible()
    editor.fill(code)
    # JupyterLab drops the first keys while its notebook is still loading.
    wait_for("the cell to run", lambda: cell_runs(cell, editor), 30, 1.0)
    return cell.locator(".jp-OutputArea-output")


def cell_runs(cell: Locator, editor: Locator) -> bool:
    """Press Ctrl-Enter; whether the cell has begun to run."""
    if cell.locator(".jp-InputPrompt").inner_text().strip() == "[ ]:":
        editor.press("Control+Enter")
    return cell.locator(".jp-InputPrompt").inner_text().strip() != "[ ]:"


def screen_text(terminal: Page) -> str:
    """The text on the terminal's screen."""
    text = terminal.evaluate(
        """() => { if (!window.term) return '';  // the page is still loading
            const b = window.term.buffer.active, lines = [];
            for (let i = 0; i < b.length; i++) lines.push(b.getLine(i).translateToString(true));
            return lines.join('\\n'); }"""
    )
    return str(text)


def type_line(terminal: Page, line: str) -> None:
    """Type a command and press Enter, once there is a prompt: earlier keys would be lost."""
    expect_output(terminal, "$")
    terminal.locator(".xterm-helper-textarea").press_sequentially(line)
    terminal.keyboard.press("Enter")


def expect_output(terminal: Page, text: str) -> None:
    """Wait until the terminal shows a text."""
    wait_for(f"{text!r} in the terminal", lambda: text in screen_text(terminal), 20)


def new_notebook(lab: Page) -> None:
    """A click on the launcher's first card."""
    lab.locator(".jp-LauncherCard[data-category=Notebook]").first.click(timeout=STARTS)
    expect(lab.locator(".jp-Notebook-cell").first).to_be_visible(timeout=STARTS)
    expect(lab.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_visible(
        timeout=STARTS
    )
