"""A terminal in a browser window, as its tests see and use it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, expect

from tests.support.cluster import wait_for

STARTS = 60_000
SIZE: ViewportSize = {"width": 1280, "height": 860}

# tmux asks a new window twice whether it has the focus. A response after the prefix key would end
# that key's effect: nothing counts as shown before both have been sent.
_COUNT = """(() => {
    window.answers = 0;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (data) {
        const text = new TextDecoder().decode(data);
        answers += (text.match(/\\x1b\\[[IO]/g) ?? []).length;
        return send.call(this, data);
    };
})()"""
_SHOWN = """() => { if (!window.term || answers < 2) return [];
    const b = term.buffer.active, rows = [];
    for (let i = 0; i < b.length; i++) rows.push(b.getLine(i).translateToString(true));
    return rows; }"""


class Terminal:
    """A window with a terminal."""

    def __init__(self, context: BrowserContext, link: str, page: Page | None = None) -> None:
        self.page: Page = page or context.new_page()
        self.page.add_init_script(_COUNT)
        self.page.goto(link)
        expect(self.page.locator(".xterm-screen")).to_be_visible(timeout=STARTS)
        try:
            self._wait_for_prompt(10)
        except AssertionError:  # left in copy mode, or in a program, by a window that was closed
            self.press("q", "Control+C")
            self._wait_for_prompt(20)

    def _wait_for_prompt(self, seconds: float) -> None:
        wait_for("a prompt", lambda: any("$" in row for row in self.rows()), seconds)

    def rows(self) -> list[str]:
        """The lines on the screen."""
        try:
            rows: list[str] = self.page.evaluate(_SHOWN)
        except Error:  # the page is being reloaded
            return []
        return [row.rstrip() for row in rows]  # tmux pads some lines with spaces

    def shows(self, text: str, seconds: float = 30) -> None:
        """Wait until a text is on the screen."""
        try:
            wait_for(f"{text!r} in the terminal", lambda: text in "\n".join(self.rows()), seconds)
        except AssertionError as error:
            error.add_note("\n".join(["What it shows:", *self.rows()]))
            raise

    def lacks(self, text: str) -> None:
        """Wait until a text is no longer on the screen."""
        wait_for(f"no {text!r}", lambda: text not in "\n".join(self.rows()), 30)

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type, without Enter."""
        self.page.locator(".xterm-helper-textarea").focus()
        self.page.keyboard.type(text)

    def run(self, command: str) -> None:
        """Type a command and press Enter."""
        self.type(command)
        self.press("Enter")

    def tmux(self, command: str) -> None:
        """Run a tmux command, as users do: on its own line."""
        self.press("Control+B")
        self.page.keyboard.type(":")
        wait_for("tmux's line", lambda: self.rows()[-1].startswith(":"), 30)
        self.page.keyboard.type(command)
        self.press("Enter")
        wait_for("tmux's answer", lambda: not self.rows()[-1].startswith(":"), 30)

    def print_mark(self, mark: str) -> None:
        """Have the shell print a marker: by then it has read everything typed before."""
        self.run(f"echo {mark[:1]}''{mark[1:]}")
        self.shows(mark)

    def clear(self, mark: str, attempts: int = 3) -> None:
        """Clear the screen and show a marker.

        Repeated, since tmux may take keys that come while it asks what the terminal can do for a
        part of the answer.
        """
        for left in reversed(range(attempts)):
            self.run(f"clear; echo {mark[:1]}''{mark[1:]}")
            try:
                wait_for("a clear screen", lambda: self.rows()[0] == mark, 30)
            except AssertionError as error:
                if not left:
                    error.add_note("\n".join(["What it shows:", *self.rows()]))
                    raise
                self.press("Control+C")
            else:
                return

    def drag_over(self, text: str, shift: bool = False) -> None:
        """Drag the mouse from the first letter of a text to behind the last."""
        self.shows(text)
        box = self.page.locator(".xterm-screen").bounding_box()
        size: dict[str, Any] = self.page.evaluate("({columns: term.cols, rows: term.rows})")
        assert box is not None
        wide, high = box["width"] / size["columns"], box["height"] / size["rows"]
        row, line = next((n, line) for n, line in enumerate(self.rows()) if text in line)
        y = box["y"] + (row + 0.5) * high
        x = box["x"] + (line.index(text) + 0.4) * wide
        if shift:
            self.page.keyboard.down("Shift")
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + 2 * wide, y, steps=3)
        self.page.mouse.move(x + len(text) * wide, y, steps=3)
        self.page.mouse.up()
        if shift:
            self.page.keyboard.up("Shift")

    def clipboard(self) -> str:
        """The clipboard, as any other program would paste it."""
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    def put_on_clipboard(self, text: str) -> None:
        """Copy a text, as another program would."""
        self.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)

    def copied(self, text: str) -> None:
        """Wait until a text is on the clipboard."""
        wait_for(f"{text!r} on the clipboard", lambda: self.clipboard() == text, 30)

    def heap(self) -> float:
        """Megabytes of JavaScript heap after a garbage collection."""
        inspector = self.page.context.new_cdp_session(self.page)
        inspector.send("HeapProfiler.collectGarbage")
        used = inspector.send("Runtime.getHeapUsage")["usedSize"]
        inspector.detach()
        return float(used) / 1e6


class Line:
    """The WebSocket frames of a page, from its first one on."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[tuple[float, str]] = []
        self._began = time.monotonic()
        inspector = page.context.new_cdp_session(page)
        inspector.on("Network.webSocketFrameSent", lambda event: self._note("sent", event))
        inspector.on("Network.webSocketFrameReceived", lambda event: self._note("got", event))
        inspector.send("Network.enable")

    def _note(self, way: str, event: dict[str, Any]) -> None:
        frame = event["response"]
        binary = frame["opcode"] == 2
        data = base64.b64decode(frame["payloadData"]) if binary else frame["payloadData"]
        seconds = time.monotonic() - self._began
        self._frames.append((seconds, f"after {seconds:.1f} s {way} {data!r:.300}"))

    def between(self, first: float, last: float) -> list[str]:
        """The frames between two times, in seconds since the start; waits until they are over."""
        while (left := self._began + last - time.monotonic()) > 0:
            self._page.wait_for_timeout(1000 * left)  # events arrive while Playwright waits
        self._page.wait_for_timeout(10)
        return [text for seconds, text in self._frames if first < seconds < last]


NewTerminal = Callable[..., Terminal]


@contextmanager
def terminals(browser: Browser, link: Callable[[], str]) -> Iterator[NewTerminal]:
    """Opens terminals, each in a browser of its own, or beside another one; closes them at the end.

    link makes the address; the options are those of the browser's context.
    """
    contexts: list[BrowserContext] = []

    def make(beside: Terminal | None = None, script: str = "", **options: Any) -> Terminal:
        if beside is not None:
            return Terminal(beside.page.context, link())
        context = browser.new_context(**{"viewport": SIZE, **options})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        if script:
            context.add_init_script(script)
        return Terminal(context, link())

    yield make
    for context in contexts:
        context.close()
