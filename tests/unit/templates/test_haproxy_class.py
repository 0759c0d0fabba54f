"""A class behind one address, at a real HAProxy and a real gunicorn."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest

from tests.unit.web.front import Front, running_front
from tests.unit.web.gunicorn_site import PASSWORD, STUDENTS, behind

pytestmark = [
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A portal with the limits that sites have unless they set others."""
    with running_front(tmp_path_factory.mktemp("front"), "ports") as running, behind(running):
        yield running


class Student:
    """A browser with one connection and one cookie."""

    def __init__(self, front: Front, name: str) -> None:
        self.name = name
        self._host = f"localhost:{front.port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
        self._cookie = ""

    def ask(self, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str]:
        """The status of a page or form, its text and Retry-After."""
        headers = {"Host": self._host, "Cookie": self._cookie, "Origin": f"http://{self._host}"}
        body = urlencode(fields) if fields else None
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request("POST" if fields else "GET", path, body, headers)
        answer = self._connection.getresponse()
        for name, morsel in SimpleCookie(answer.getheader("Set-Cookie", "")).items():
            self._cookie = f"{name}={morsel.value}"
        return answer.status, answer.read().decode(), answer.getheader("Retry-After", "")

    def log_in(self, password: str = PASSWORD) -> tuple[int, str, str]:
        """Load the page and send the form."""
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', self.ask("/login")[1])
        assert token is not None
        fields = {"csrf_token": token[1], "username": self.name, "password": password}
        return self.ask("/login", fields)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def logged_in(front: Front, name: str, wrong: bool) -> int:
    """The status of a log-in, perhaps after a wrong password."""
    with contextlib.closing(Student(front, name)) as student:
        if wrong:
            assert student.log_in("mistyped")[0] == 401
        return student.log_in()[0]


def test_a_class_logs_in_and_a_guesser_among_them_is_stopped(front: Front) -> None:
    """All of 300, a third of whom mistype first; formerly ten a minute."""
    with ThreadPoolExecutor(8) as pool:
        wrong = [number % 3 == 0 for number in range(len(STUDENTS))]
        found = list(
            pool.map(lambda pair: logged_in(front, *pair), zip(STUDENTS, wrong, strict=True))
        )
    assert found == [303] * len(STUDENTS)
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(front.ca.parent / "haproxy.sock"))
        runtime.sendall(b"show table logins\n")
        assert runtime.makefile().read().count(" key=") == len(STUDENTS)

    guesses = (logged_out(front, f"nobody{number}") for number in range(200))
    _status, page, pause = next(answer for answer in guesses if answer[0] == 429)
    assert "Too many wrong passwords came from your network, where this account is new." in page
    assert 'name="password"' in page, "the form can be sent again"
    assert 0 < int(pause) <= 18
    assert logged_in(front, STUDENTS[0], wrong=True) == 303, "who has logged in here still can"


def logged_out(front: Front, name: str) -> tuple[int, str, str]:
    """The answer to a guess."""
    with contextlib.closing(Student(front, name)) as student:
        return student.log_in("guess")
