"""The check that refuses new waits for others (tests/waits.py)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests import waits
from tests.waits import CONFIGURATIONS, TABLE, all_waits, directives, problems, wait_calls

FILE = "portal/adapters/new.py"


def names(text: str) -> list[str]:
    """What is noted in a module's source."""
    return [call.name for call in wait_calls(text, FILE)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import socket\nsocket.create_connection(place)", "socket.create_connection"),
        ("from socket import create_connection as c\nc(place)", "socket.create_connection"),
        ("import urllib.request\nurllib.request.urlopen(url)", "urllib.request.urlopen"),
        ("import requests\nrequests.get(url)", "requests.get"),
        ("import subprocess\nsubprocess.run(argv)", "subprocess.run"),
        ("import os\nos.waitpid(1, 0)", "os.waitpid"),
        ("import fcntl\nfcntl.flock(file, fcntl.LOCK_EX)", "fcntl.flock"),
        ("client.connect(host)", ".connect"),
        ("stream.recv(100)", ".recv"),
        ("listener.accept()", ".accept"),
        ("process.communicate()", ".communicate"),
        ("transport.auth_publickey(user, key)", ".auth_publickey"),
        ("lock.acquire()", ".acquire"),
        ("lock.acquire(timeout=3)", ".acquire"),
        ("thread.join()", ".join"),
        ("thread.join(timeout=3)", ".join"),
        ("thread.join(3)", ".join"),
        ("self.thread.join(self._seconds)", ".join"),
        ("thread.join(SECONDS)", ".join"),
        ("threads[0].join(end - now)", ".join"),
        ("event.wait(3)", ".wait"),
        ("async def a(): await reader.readexactly(3)", ".readexactly"),
    ],
)
def test_a_wait_is_noted(text: str, name: str) -> None:
    assert names(text) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "lock.acquire(blocking=False)",
        "import fcntl\nfcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "import fcntl\nfcntl.flock(file, fcntl.LOCK_UN)",
        "', '.join(words), os.path.join(a, b)",
        "import os, shlex\nos.path.join(*parts), os.path.join(a), shlex.join(words)",
        "between.join(str(word) for word in words), between.join([a, b])",
        "between.join(map(str, words))",
        "query.join(table, condition)",
        "import subprocess\nsubprocess.Popen(argv).poll()",
        "dictionary.get(key)",
    ],
)
def test_what_does_not_wait_is_not(text: str) -> None:
    assert names(text) == []


def test_a_lock_that_is_held_meanwhile_is_part_of_the_name() -> None:
    assert names("with self._lock:\n    stream.recv(1)") == [".recv+self._lock"]
    assert names("with a, self._lock, self._turn:\n    x.wait(1)") == [
        ".wait+self._lock+self._turn"
    ]
    assert names("with self._changed:\n    self._changed.wait(1)") == [".wait"], "it is let go"
    assert names("with self._lock:\n    def later(): stream.recv(1)") == [".recv"]
    assert names("with open(path) as file:\n    stream.recv(1)") == [".recv"]


def table(*calls: str, **changes: str) -> dict[str, Any]:
    row = {"for": "user", "at_most": "5 s", "holds": "a thread", "bounded": "each user"}
    return {"wait": [{**row, **changes, "calls": list(calls)}]}


def test_each_wait_needs_its_row_and_each_row_a_wait() -> None:
    found = wait_calls("def a():\n    with lock: s.recv(1)\n    s.accept()", FILE)
    assert problems(found, table(f"{FILE} a .recv+lock .accept")) == []
    assert problems(found, table(f"{FILE} *")) == []
    wrong = problems(found, table(f"{FILE} a .recv .accept"))
    assert wrong == [
        f"{FILE}:2: .recv+lock in a has no row in waits.toml",
        f"waits.toml: {FILE} a .recv fits no call any more",
    ]


@pytest.mark.parametrize("name", ["for", "at_most", "holds", "bounded"])
def test_a_row_says_everything(name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        problems([], table(f"{FILE} *", **{name: " "}))


def test_a_configuration_is_read_by_sections() -> None:
    text = (
        "# timeout of nothing\nglobal\n  maxconn {{ a * 2 }}\ndefaults\n  timeout client 1h\n"
        "frontend web\n  bind *:80\n  tcp-request inspect-delay 5s\n"
        "{% macro gateway() %}\n  server one 0.0.0.0:0 ssl\n"
        "  http-request set-timeout client 30s if slow\n"
    )
    found = [f"{call.function} {call.name}" for call in directives(text, "x.cfg")]
    assert found == [
        "global maxconn={{a*2}}",
        "defaults timeout-client=1h",
        "web bind",
        "web inspect-delay=5s",
        "gateway server-one",
        "gateway set-timeout-client=30s",
    ]


def test_a_new_wait_in_the_tree_is_refused(tmp_path: Path) -> None:
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    before = list(all_waits())
    assert len(before) > 150
    assert problems(before, known) == []
    for name in CONFIGURATIONS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('''CONFIG = """\nfrontend new\n  timeout client 9h\n"""''')
    (tmp_path / FILE).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / FILE).write_text("import socket\nsocket.create_connection(place)\n")
    new = list(all_waits(tmp_path))
    assert len(new) == 1 + len(CONFIGURATIONS)
    assert problems([*before, *new], known) == [f"{call} has no row in waits.toml" for call in new]


def test_what_is_wrong_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert waits.main() == 0
    assert capsys.readouterr().out == ""
