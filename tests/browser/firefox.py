"""Debian's Firefox over WebDriver BiDi, which it supports itself; Playwright needs its own build.

The protocol: https://w3c.github.io/webdriver-bidi/. Only what the tests need.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.cluster import wait_for

FIREFOX = "/usr/bin/firefox-esr"
ANSWER = 60.0
"""Seconds until the browser's answer to one command; a page loads meanwhile."""
KEYS = {
    "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Control": "\ue009",
    "End": "\ue010", "Delete": "\ue017",
}  # fmt: skip

_FIND = """(selector, text) => {
    const shown = [...document.querySelectorAll(selector)].filter((one) =>
        one.checkVisibility({visibilityProperty: true}) && one.offsetWidth > 1 &&
        (one.getAttribute('aria-label') || one.innerText || one.value || '').includes(text));
    if (!shown.length) return null;
    shown[0].scrollIntoView({block: 'center', behavior: 'instant'});
    const box = shown[0].getBoundingClientRect();
    return [Math.floor(box.x + box.width / 2), Math.floor(box.y + box.height / 2)];
}"""


class FirefoxError(Exception):
    """The browser's error answer."""


class Firefox:
    """One browser with a new profile."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._commands = 0
        # The cluster's certificate authority is unknown to it.
        self.send("session.new", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": True}}})

    def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a command and return its result; events in between are skipped."""
        self._commands += 1
        self._socket.send(json.dumps({"id": self._commands, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv(timeout=ANSWER))
            if answer.get("id") != self._commands:
                continue
            if answer["type"] == "error":
                raise FirefoxError(f"{method}: {answer['error']}: {answer['message']}")
            found: dict[str, Any] = answer["result"]
            return found

    def windows(self) -> list[Window]:
        """All tabs, in the order of their creation."""
        tree = self.send("browsingContext.getTree", {"maxDepth": 0})
        return [Window(self, one["context"]) for one in tree["contexts"]]

    def opened_by(self, window: Window, selector: str, text: str = "") -> Window:
        """Click, and return the new tab."""
        before = {one.context for one in self.windows()}
        window.click(selector, text)
        return wait_for("a new tab", lambda: self._new(before))

    def _new(self, before: set[str]) -> Window | None:
        return next((one for one in self.windows() if one.context not in before), None)


class Window:
    """One tab; elements are found by a CSS selector and a part of their label or text."""

    def __init__(self, browser: Firefox, context: str) -> None:
        self._browser = browser
        self.context = context

    def go(self, url: str) -> None:
        """Open an address and wait until it has loaded."""
        params = {"context": self.context, "url": url, "wait": "complete"}
        self._browser.send("browsingContext.navigate", params)

    def run(self, function: str, *arguments: object) -> Any:
        """Call a JavaScript function in the page; its result has to be JSON."""
        called = f"async (...all) => JSON.stringify(await ({function})(...all))"
        result = self._browser.send(
            "script.callFunction",
            {
                "functionDeclaration": called,
                "arguments": [{"type": "string", "value": str(one)} for one in arguments],
                "target": {"context": self.context},
                "awaitPromise": True,
            },
        )
        if result["type"] == "exception":
            raise FirefoxError(result["exceptionDetails"]["text"])
        value = result["result"].get("value")
        return None if value is None else json.loads(value)

    def text(self, selector: str = "body") -> str:
        """The text of the first such element; "" without one."""
        return str(self.run("(s) => document.querySelector(s)?.innerText ?? ''", selector))

    def shows(self, text: str, selector: str = "body", seconds: float = 60) -> None:
        """Wait for a text."""
        wait_for(f"{text!r} in {selector}", lambda: text in self._text(selector), seconds)

    def _text(self, selector: str) -> str:
        try:
            return self.text(selector)
        except FirefoxError:  # the page was replaced at this moment
            return ""

    def click(self, selector: str, text: str = "", seconds: float = 60) -> None:
        """Click a visible element with the mouse."""
        x, y = wait_for(f"{selector} {text!r}", lambda: self._find(selector, text), seconds)
        self._act(
            {
                "type": "pointer",
                "id": "mouse",
                "actions": [
                    {"type": "pointerMove", "x": x, "y": y},
                    {"type": "pointerDown", "button": 0},
                    {"type": "pointerUp", "button": 0},
                ],
            }
        )

    def _find(self, selector: str, text: str) -> list[int] | None:
        try:
            found: list[int] | None = self.run(_FIND, selector, text)
        except FirefoxError:
            return None
        return found

    def fill(self, selector: str, text: str) -> None:
        """Replace a field's text by typing."""
        self.click(selector)
        self.run("(s) => document.querySelector(s).select()", selector)
        self.type(text)

    def type(self, *texts: str) -> None:
        """Type texts; a name in KEYS is one key."""
        keys = [key for text in texts for key in ([KEYS[text]] if text in KEYS else text)]
        downs_and_ups = [
            {"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")
        ]
        self._act({"type": "key", "id": "keyboard", "actions": downs_and_ups})

    def chord(self, held: str, key: str) -> None:
        """Press a key while another one is held, both as in KEYS."""
        pressed = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)]
        actions = [{"type": kind, "value": KEYS.get(one, one)} for kind, one in pressed]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def _act(self, source: dict[str, Any]) -> None:
        self._browser.send("input.performActions", {"context": self.context, "actions": [source]})

    def picture(self, file: Path) -> None:
        """Save a screenshot."""
        shot = self._browser.send("browsingContext.captureScreenshot", {"context": self.context})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Start the browser, headless, with an empty profile in this folder."""
    command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0"]
    with subprocess.Popen(
        [*command, "--profile", str(profile), "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"HOME": str(profile), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    ) as process:
        try:
            with connect(f"{_address(process)}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stderr or ():
        if match := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
            return match[1]
    raise AssertionError("Firefox ended without a WebDriver BiDi address")
