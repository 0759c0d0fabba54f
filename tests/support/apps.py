"""Drives apps as users do: runs notebook cells, types into a terminal."""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from websockets.sync.client import ClientConnection

from tests.support.client import Json, Visitor
from tests.support.cluster import wait_for


@dataclass
class Output:
    """The output of a cell."""

    text: str = ""
    error: str = ""
    died: bool = False
    states: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    """What was displayed, by media type."""


class Kernel:
    """A Jupyter kernel over its WebSocket."""

    def __init__(
        self, visitor: Visitor, kernel: str | None = None, language: str = "python3"
    ) -> None:
        self.visitor = visitor
        visitor.get("/lab")  # Jupyter sets its XSRF token here
        self.id = kernel or self._start(language)
        self._session = uuid.uuid4().hex
        self._socket: ClientConnection | None = None

    def _start(self, language: str) -> str:
        response = self.visitor.send("POST", "/api/kernels", json={"name": language})
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    def connect(self) -> None:
        """Reopen the WebSocket, as the page does after a disconnect."""
        self.close()
        path = f"/api/kernels/{self.id}/channels?session_id={self._session}"
        self._socket = self.visitor.websocket(path)
        wait_for("the kernel to introduce itself", self._introduces_itself)

    def _introduces_itself(self) -> bool:
        # As JupyterLab does before it sends a cell: a restarting kernel may lose messages.
        assert self._socket is not None
        asked = self._message("kernel_info_request", {})
        self._socket.send(json.dumps(asked))
        with contextlib.suppress(TimeoutError):
            while True:
                answer = json.loads(self._socket.recv(timeout=2))
                if answer["parent_header"].get("msg_id") == asked["header"]["msg_id"]:
                    return True
        return False

    def close(self) -> None:
        """Close the WebSocket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def run(self, code: str, seconds: float = 40) -> Output:
        """Run a cell; returns early if the kernel dies."""
        if self._socket is None:
            self.connect()
        assert self._socket is not None
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = self._message("execute_request", content)
        self._socket.send(json.dumps(message))
        output, deadline = Output(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = json.loads(self._socket.recv(timeout=max(deadline - time.monotonic(), 0.1)))
            if self._take(answer, message["header"]["msg_id"], output):
                return output
        raise AssertionError(f"the cell did not end within {seconds:g} s: {output}")

    def value(self, code: str) -> Any:
        """Run a cell that prints JSON, and return the value."""
        output = self.run(code)
        assert not output.error, output.error
        return json.loads(output.text)

    def _message(self, kind: str, content: Json) -> Json:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": kind,
            "session": self._session,
            "username": "test",
            "version": "5.3",
        }
        rest: Json = {"parent_header": {}, "metadata": {}, "buffers": []}
        return {"channel": "shell", "header": header, "content": content} | rest

    @staticmethod
    def _take(answer: Json, request: str, output: Output) -> bool:
        kind, content = answer["header"]["msg_type"], answer["content"]
        mine = answer["parent_header"].get("msg_id") == request
        if kind == "status":
            output.states.append(content["execution_state"])
            if content["execution_state"] in ("restarting", "dead", "autorestarting"):
                output.died = True
                return True
            return bool(mine and content["execution_state"] == "idle")
        if mine and kind == "stream":
            output.text += content["text"]
        if mine and kind == "display_data":
            output.shown |= content["data"]
        if mine and kind == "error":
            output.error = "\n".join(content["traceback"])
        return False


_STATUS_LINE = re.compile(r"\d:\S+\* .*? left *")
"""tmux's, which it may draw at any time, also right after a digit that a command has printed."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|.)")


class Terminal:
    """A browser terminal: speaks ttyd's WebSocket protocol as its page does."""

    ENTER = "\r"
    WHEEL_UP = "\x1b[<64;10;10M"

    def __init__(self, visitor: Visitor) -> None:
        visitor.get("/token")
        self._socket = visitor.websocket("/ws", "tty")
        self._socket.send(json.dumps({"AuthToken": "", "columns": 100, "rows": 30}).encode())
        self.seen = ""

    def type(self, text: str) -> None:
        """Type."""
        self._socket.send(b"0" + text.encode())

    def run(self, command: str, seconds: float = 15) -> str:
        """Run a shell command and return what it printed."""
        mark = uuid.uuid4().hex[:8]
        # The shell assembles the marker, so that the echo of the input does not match it.
        self.seen = ""
        line = f"echo be''gin-{mark}; {command}; echo e''nd-{mark}"
        self.type(line + self.ENTER)
        self.wait_for(f"end-{mark}", seconds)
        # The last one: tmux prints the screen again when its status line appears.
        printed = self.seen.rpartition(f"begin-{mark}")[2].split(f"end-{mark}", 1)[0]
        return _STATUS_LINE.sub("", printed)

    def wait_for(self, text: str, seconds: float = 15) -> None:
        """Read until the text has been shown."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was not shown: {self.seen[-2000:]!r}"
            try:
                self._read(left)
            except TimeoutError:
                continue

    def _read(self, seconds: float) -> None:
        data = self._socket.recv(timeout=seconds)
        raw = data.encode() if isinstance(data, str) else data
        if raw[:1] == b"0":
            self.seen += _ESCAPES.sub("", raw[1:].decode(errors="replace"))

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
