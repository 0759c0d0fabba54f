"""A reload of a real HAProxy begins with the routes as they are, never with revoked ones."""

from __future__ import annotations

import http.client
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from portal.adapters.haproxy import map_files
from portal.adapters.haproxy.map_files import ROUTES, MapFiles
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.adapters.haproxy.runtime_api import Haproxy, Process
from portal.core.auth.person import hash_secret
from portal.errors import Unavailable
from tests.unit.web.front import Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

ROUNDS = 8
EACH = 12
"""Keys that each process revokes in a round."""


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """One HAProxy for all tests here."""
    with running_front(tmp_path_factory.mktemp("front"), "subdomains") as running:
        yield running


@pytest.fixture(autouse=True)
def _no_routes(front: Front) -> Iterator[None]:
    yield
    front.routes.remove(*front.routes.entries())


@pytest.fixture
def haproxy(front: Front) -> Haproxy:
    """Its sockets."""
    return Haproxy(str(front.ca.parent))


def cookie(front: Front, number: int) -> str:
    return f"{front.web.app_cookie(front.label)}=c{number}"


def key(front: Front, number: int) -> str:
    return f"{front.label}.{hash_secret(f'c{number}')}"


def who(front: Front, number: int) -> str:
    return str(front.app(cookie=cookie(front, number)).seen["who"])


def test_a_reload_begins_with_the_routes(front: Front, haproxy: Haproxy) -> None:
    front.routes.add(key(front, 1), front.target)
    front.routes.add_path("/user/alice/", key(front, 1))
    front.routes.set_background_requests(["jupyterlab/GET/api/kernels"])
    before = haproxy.newest()
    haproxy.reload()
    assert haproxy.newest() != before
    assert who(front, 1) == "app"
    assert not front.routes.is_lost()
    assert front.routes.entries() == {key(front, 1): front.target}
    run = front.ca.parent
    assert key(front, 1) in haproxy.ask(f"show map {run}/hub.map")
    assert "api/kernels" in haproxy.ask(f"show map {run}/background.map")
    front.routes.set_paths({})
    front.routes.remove(key(front, 1))
    haproxy.reload()
    assert who(front, 1) == "portal"
    assert "alice" not in haproxy.ask(f"show map {run}/hub.map")


@pytest.mark.parametrize("how", ["reload", "signal"])
def test_no_request_is_refused_while_it_is_reloaded(
    front: Front, haproxy: Haproxy, how: str
) -> None:
    front.routes.add(key(front, 1), front.target)
    seen, stop = [], threading.Event()

    def ask() -> None:
        while not stop.wait(0.002):
            answer = front.app(cookie=cookie(front, 1))
            seen.append((answer.status, answer.seen.get("who")))

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        for _ in range(3):
            answers = len(seen)
            reload(front, haproxy, how)
            while len(seen) < answers + 2 and not any(each.done() for each in asking):
                time.sleep(0.002)
        stop.set()
        for each in asking:
            each.result()
    assert set(seen) == {(200, "app")}
    assert len(seen) >= 6


def test_a_connection_that_is_idle_meanwhile_gets_one_more_answer(
    front: Front, haproxy: Haproxy
) -> None:
    """A client may be sending its next request just then."""
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
    with closing(connection):
        said = []
        for _ in range(2):
            connection.request("GET", "/x", headers={"Host": f"localhost:{front.port}"})
            answer = connection.getresponse()
            answer.read()
            said.append((answer.status, answer.getheader("Connection")))
            with front.routes.exclusively():
                haproxy.reload()
            time.sleep(0.3)
    assert said == [(200, None), (200, "close")]


def reload(front: Front, haproxy: Haproxy, how: str) -> None:
    """Reload as `slipway reload-proxy` does, or by a signal that nobody knows of."""
    if how == "reload":
        with front.routes.exclusively():
            haproxy.reload()
        return
    before = haproxy.newest()
    front.process.send_signal(signal.SIGUSR2)
    deadline = time.monotonic() + 10
    while haproxy.newest() == before:
        assert time.monotonic() < deadline, "no new process"
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["reload", "signal"])
def test_a_revoked_route_never_comes_back(front: Front, haproxy: Haproxy, how: str) -> None:
    """While HAProxy is reloaded two processes revoke, a third adds, and an attacker asks."""
    run = str(front.ca.parent)
    opened: list[int] = []

    def revoke(numbers: range) -> None:
        routes = HaproxyRoutes(run)
        for number in numbers:
            routes.remove(key(front, number))
            if who(front, number) == "app":
                opened.append(number)

    def add(numbers: range) -> None:
        routes = HaproxyRoutes(run)
        for number in numbers:
            routes.add(key(front, number), front.target)

    kept: set[str] = set()
    with ThreadPoolExecutor(4) as pool:
        for first in range(100, 100 + 100 * ROUNDS, 100):
            add(range(first, first + 2 * EACH))
            tasks = [
                pool.submit(reload, front, haproxy, how),
                pool.submit(revoke, range(first, first + EACH)),
                pool.submit(revoke, range(first + EACH, first + 2 * EACH)),
                pool.submit(add, range(first + 80, first + 83)),
            ]
            for task in tasks:
                task.result()
            kept |= {key(front, number) for number in range(first + 80, first + 83)}
            # Both what runs and what the next process will read.
            assert front.routes.entries() == dict.fromkeys(kept, front.target)
    assert opened == []
    assert who(front, first + 80) == "app"
    front.routes.remove(*kept)


def test_many_routes_are_added_in_few_messages(
    front: Front, haproxy: Haproxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New ones, others with another target, and some that are there, also in the next process."""
    routes = {key(front, number): front.target for number in range(2000, 2400)}
    earlier = dict(list(routes.items())[:100])
    front.routes.add_all(earlier | dict.fromkeys(list(earlier)[:10], "127.0.0.1@1@x"))
    sent: list[tuple[str, ...]] = []
    ask = Process.ask

    def counted(process: Process, *commands: str) -> str:
        sent.append(commands)
        return ask(process, *commands)

    with monkeypatch.context() as patch:
        patch.setattr(Process, "ask", counted)
        front.routes.add_all(routes)
    assert len(sent) < 10
    assert front.routes.entries() == routes
    shown = haproxy.ask(f"show map {front.ca.parent}/{ROUTES}")
    assert shown.count(front.target) == len(routes), "none twice"
    haproxy.reload()
    assert front.routes.entries() == routes
    assert who(front, 2399) == "app"


def test_a_route_revoked_while_many_are_added_never_comes_back(
    front: Front, haproxy: Haproxy
) -> None:
    """HAProxy is reloaded meanwhile; `valid` stands in for the database."""
    run = str(front.ca.parent)
    valid = {key(front, number): front.target for number in range(3000, 3200)}
    opened: list[int] = []

    def revoke(numbers: range) -> None:
        routes = HaproxyRoutes(run)
        for number in numbers:
            del valid[key(front, number)]
            routes.remove(key(front, number))
            if who(front, number) == "app":
                opened.append(number)

    def fill(keys: list[str]) -> None:
        routes = HaproxyRoutes(run)
        for start in range(0, len(keys), 20):
            with routes.exclusively():
                some = keys[start : start + 20]
                routes.add_all({each: front.target for each in some if each in valid})
            time.sleep(0.01)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            front.routes.remove(*front.routes.entries())
            first = min(int(number) for number in range(3000, 3200) if key(front, number) in valid)
            tasks = [
                pool.submit(fill, sorted(valid)),
                pool.submit(reload, front, haproxy, "signal"),
                pool.submit(revoke, range(first, first + 10)),
                pool.submit(revoke, range(first + 10, first + 20)),
            ]
            for task in tasks:
                task.result()
            assert front.routes.entries() == valid
    assert opened == []


def test_every_old_process_forgets_a_revoked_key(front: Front, haproxy: Haproxy) -> None:
    """An old process still serves connections that were open before the reload."""
    front.routes.add(key(front, 1), front.target)
    front.routes.add(key(front, 2), front.target)
    with closing(Stream(front, cookie=cookie(front, 2))) as stream:
        assert stream.opened
        haproxy.reload()
        front.routes.remove(key(front, 1))
        maps = [
            process.ask(f"show map {front.ca.parent}/{ROUTES}") for process in haproxy.processes()
        ]
        assert len(maps) >= 2
        assert not any(key(front, 1) in text for text in maps)
        assert stream.echoes()
    front.routes.remove(key(front, 2))


def test_a_refused_configuration_changes_nothing(front: Front, haproxy: Haproxy) -> None:
    front.routes.add(key(front, 1), front.target)
    config = front.ca.parent / "haproxy.cfg"
    right = config.read_text()
    try:
        config.write_text(right + "\nnonsense\n")
        with closing(Stream(front, cookie=cookie(front, 1))) as stream:
            with pytest.raises(Unavailable, match="refused"):
                haproxy.reload()
            assert stream.echoes()
        assert who(front, 1) == "app"
        front.routes.remove(key(front, 1))
        assert who(front, 1) == "portal"
    finally:
        config.write_text(right)
        haproxy.reload()
    assert who(front, 1) == "portal"


def test_without_an_answer_the_file_has_forgotten_already(tmp_path: Path) -> None:
    """HAProxy is away: the next one starts without the key, and the caller knows it is not done."""
    files, routes = MapFiles(str(tmp_path)), HaproxyRoutes(str(tmp_path))
    name = "a." + "0" * 64
    files.write(ROUTES, {name: "10.0.0.1@1@x", "b.public": "10.0.0.1@1@y"})
    with pytest.raises(Unavailable):
        routes.remove(name)
    assert files.read(ROUTES) == {"b.public": "10.0.0.1@1@y"}


@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_file_that_cannot_be_written_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A reload without routes refuses until the worker fills them; one with old routes opens."""
    files = MapFiles(str(tmp_path))
    files.write(ROUTES, {"b.public": "10.0.0.1@1@y"})
    files.set_complete(files.id(ROUTES))
    assert files.is_complete()

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target: Callable[..., object] = Path.open if step == "write" else Path.replace
    monkeypatch.setattr(Path, target.__name__, fails)
    with pytest.raises(OSError, match="No space"):
        files.write(ROUTES, {})
    monkeypatch.undo()
    assert files.read(ROUTES) == {}
    assert not files.is_complete()
    assert {file.name for file in tmp_path.iterdir()} == {ROUTES, "routes.lock"}


def test_a_change_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_files, "_PATIENCE", 0.05)
    with MapFiles(str(tmp_path)).exclusively(), pytest.raises(Unavailable, match="busy"):
        HaproxyRoutes(str(tmp_path)).remove("a.public")
