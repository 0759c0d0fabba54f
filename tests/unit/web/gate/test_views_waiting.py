"""The waiting page at an app's own origin: for its owner, and for everybody at a public one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from tests.support.fakes import World
from tests.unit.web.conftest import PORTAL, Browser, Runner

Launched = Callable[..., Runner]
HTML = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def runner(launched: Launched) -> Runner:
    """Alice's session, with a name that reveals something."""
    return launched("alice", name="secretproject")


def open_app(app: Flask, alice: Browser, runner: Runner, public: bool) -> tuple[Browser, Browser]:
    """Alice's browser with access to her app, and a stranger's without."""
    fields = {"public": "yes"} if public else {}
    answer = alice.post(f"/sessions/{runner.session.id}/apps/board/open", fields)
    link = urlsplit(answer.headers["Location"])
    origin = f"{link.scheme}://{link.netloc}"
    inside = Browser(app, origin)
    assert inside.get(f"{link.path}?{link.query}", headers=HTML).status_code == 303
    return inside, Browser(app, origin)


def status(browser: Browser) -> dict[str, Any]:
    """The request of the page's script."""
    found: dict[str, Any] = browser.get("/.slipway/status").json  # type: ignore[assignment]
    return found


def test_every_step_and_for_how_long(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    inside, _ = open_app(app, alice, runner, public=False)
    runner.job.reason = "Priority"
    world.clock.advance(seconds=70)
    world.worker.poll()
    now = status(inside)
    assert (now["step"], now["message"], now["waited"]) == (
        "queued", "Others are ahead in the queue.", 70,
    )  # fmt: skip
    world.slurm.start(runner.job)
    world.worker.poll()
    world.clock.advance(seconds=3)
    now = status(inside)
    assert (now["step"], now["message"], now["waited"]) == (
        "starting", "The container is starting.", 3,
    )  # fmt: skip
    runner.ready()
    assert status(inside) == {
        "step": "opening",
        "message": "Board is starting.",
        "advice": "",
        "log": "",
        "waited": None,
        "session": "secretproject",
    }
    runner("apps/board", {"state": "ready"})
    assert status(inside)["step"] == "ready"


def test_a_failed_app_shows_its_log_and_can_be_restarted(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    inside, _ = open_app(app, alice, runner, public=False)
    runner.ready()
    message = "board ended before it answered (exit code 3)"
    runner("apps/board", {"state": "failed", "message": message, "log": "no such module"})
    page = inside.get("/", headers=HTML)
    assert page.status_code == 200
    assert "Board did not start: it ended with exit code 3." in page.text
    assert "no such module" in page.text
    assert f"{PORTAL}/sessions/{runner.session.id}/log" in page.text
    label = world.apps.opened(runner.session.id)[0].label
    assert f'href="{PORTAL}/open/{label}' in page.text
    assert world.runners.requests == []  # it was requested before the session ran
    assert alice.get(f"/open/{label}").status_code == 303
    assert [order["name"] for _, order in world.runners.requests] == ["board"]
    assert status(inside)["step"] == "opening"
    runner("apps/board", {"state": "ready"})
    runner("apps/board", {"state": "stopped"})
    assert status(inside)["message"] == "Board has stopped."


def test_strangers_at_a_public_app_learn_nothing_but_its_name(
    app: Flask, alice: Browser, runner: Runner
) -> None:
    _, stranger = open_app(app, alice, runner, public=True)

    def poll_status() -> str:
        page = stranger.get("/any/path", headers=HTML)
        assert page.status_code == 200
        now = status(stranger)
        text = page.text + str(now)
        assert now["message"] in page.text
        for secret in (
            "secretproject",
            "alice",
            runner.session.id,
            "queue",
            "exit code",
            "no such module",
        ):
            assert secret not in text, secret
        assert (now["log"], now["waited"]) == ("", None)
        return str(now["step"])

    assert poll_status() == "opening"
    runner.ready()
    assert poll_status() == "opening"
    message = "board ended before it answered (exit code 3)"
    runner("apps/board", {"state": "failed", "message": message, "log": "no such module"})
    assert poll_status() == "failed"
    assert stranger.get("/api").status_code == 409
    runner("apps/board", {"state": "ready"})


def test_a_public_app_is_open_to_strangers_until_it_is_private(
    world: World, app: Flask, alice: Browser, runner: Runner
) -> None:
    _, stranger = open_app(app, alice, runner, public=True)
    runner.ready()
    runner("apps/board", {"state": "ready"})
    world.routes.map.clear()  # HAProxy was restarted, and the stranger is redirected here
    assert status(stranger)["step"] == "ready"
    assert [key.partition(".")[2] for key in world.routes.map] == ["public"]
    alice.post(f"/sessions/{runner.session.id}/apps/board/private")
    assert world.routes.map == {}
    assert stranger.get("/.slipway/status").status_code == 401
    assert stranger.get("/", headers=HTML).headers["Location"].startswith(f"{PORTAL}/open/")


def test_a_used_link_to_a_public_app_is_refused(app: Flask, alice: Browser, runner: Runner) -> None:
    answer = alice.post(f"/sessions/{runner.session.id}/apps/board/open", {"public": "yes"})
    link = urlsplit(answer.headers["Location"])
    origin, path = f"{link.scheme}://{link.netloc}", f"{link.path}?{link.query}"
    assert Browser(app, origin).get(path).status_code == 303
    assert Browser(app, origin).get(path).status_code == 401


def test_a_public_app_of_a_session_that_ended(app: Flask, alice: Browser, runner: Runner) -> None:
    _, stranger = open_app(app, alice, runner, public=True)
    alice.post("/sessions/end", {"ids": runner.session.id})
    assert stranger.get("/.slipway/status").status_code == 401
