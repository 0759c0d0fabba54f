"""The page of one session: all facts, for owner and administrators only, live and when over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask

from portal.core.files.shares import FolderShare, ShareKey
from portal.core.session.session import Session
from portal.core.session_job.runner_protocol import Heartbeat
from portal.core.units import rounded_size
from portal.web.pages.sessions import detail
from tests.support.fakes import World
from tests.support.sessions import ALICE
from tests.unit.web.conftest import Api, Browser, Runner

Launched = Callable[..., Runner]
MakeApi = Callable[[str], Api]


def beats(world: World, session: Session, count: int, memory: int = 2**29) -> None:
    """Heartbeats of a job that uses half a core, one a minute."""
    for number in range(count):
        known = world.store.get(session.id)
        assert known is not None
        heartbeat = Heartbeat(cpu_seconds=30.0 * number, memory_bytes=memory)
        world.services.runner_calls.record_usage(known, heartbeat)
        world.clock.advance(seconds=60)


@pytest.fixture
def runner(world: World, launched: Launched) -> Runner:
    """A running session with a folder and a variable."""
    world.slurm.files["/home/alice/storage/climate/"] = b""
    found = launched(
        "alice",
        name="harbour7",
        mounts=[{"folder": "climate", "read_only": True}],
        env={"TOKEN_NAME": "very-secret-value"},
        time_limit=90,
    )
    assert found.ready().status_code == 200
    return found


def test_all_that_was_asked_for_is_shown_but_no_value_of_a_variable(
    alice: Browser, runner: Runner
) -> None:
    text = alice.get(f"/sessions/{runner.session.id}").text
    for shown in (
        "harbour7", "~/climate", "~/storage/climate</bdi>, read-only", "TOKEN_NAME", "600 MB",
        "300 MB", "n1", runner.session.id, "main",
    ):  # fmt: skip
        assert shown in text, shown
    assert "very-secret-value" not in text
    assert f'href="/sessions/{runner.session.id}"' in alice.get("/sessions").text


def test_mounted_folders_lead_to_files_for_their_user_alone(
    app: Flask, world: World, alice: Browser, launched: Callable[..., Runner]
) -> None:
    for folder in ("/home/alice/storage/a b/", "/home/bob/storage/data/"):
        world.slurm.files[folder] = b""
    share = FolderShare(ShareKey("bob", "data", "user", "alice"), "read", world.clock())
    world.systems.stores.shares.put(share, 9)
    session = launched("alice", mounts=["a b", "bob/data", "home"]).session
    addresses = ["/files/storage/a%20b", "/files/shared/bob/data", "/files/home"]
    for page in (alice.get(f"/sessions/{session.id}").text, alice.get("/sessions").text):
        for address in addresses:
            assert f'href="{address}"' in page
    admin = Browser(app).log_in("admin").get(f"/sessions/{session.id}").text
    assert "a b" in admin
    assert "/files/storage/a%20b" not in admin


def test_others_get_the_same_answer_as_for_no_session(
    bob: Browser, alice: Browser, runner: Runner
) -> None:
    for path in ("", "/now"):
        refused = bob.get(f"/sessions/{runner.session.id}{path}")
        missing = alice.get(f"/sessions/{'0' * 32}{path}")
        assert refused.status_code == missing.status_code == 404
    saved = bob.post(f"/sessions/{runner.session.id}/preset", {"preset": "stolen"})
    assert saved.status_code == 404


def test_administrators_see_it_without_apps_ssh_and_relaunch(app: Flask, runner: Runner) -> None:
    admin = Browser(app).log_in("admin")
    text = admin.get(f"/sessions/{runner.session.id}").text
    assert "harbour7" in text
    assert "alice" in text
    assert f"/sessions/{runner.session.id}/end" in text
    for hidden in ("/open", "/ssh", "/relaunch", "/preset", "app-card"):
        assert f"{runner.session.id}{hidden}" not in text, hidden
        assert hidden == "app-card" or f"apps{hidden}" not in text
    assert "app-card" not in text


def test_the_browser_polls_and_gets_nothing_new_until_something_changes(
    world: World, alice: Browser, runner: Runner
) -> None:
    address = f"/sessions/{runner.session.id}/now"
    first = alice.get(address)
    mark = first.headers["ETag"]
    assert first.status_code == 200
    assert alice.get(address, headers={"If-None-Match": mark}).status_code == 204
    beats(world, runner.session, 1)
    assert alice.get(address, headers={"If-None-Match": mark}).status_code == 200


def test_a_sample_that_is_due_is_looked_for(
    world: World, alice: Browser, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing a sample counts as no change, so the charts came up to a minute late."""
    rendered: list[str] = []
    page_of = detail._page_of

    def noted(id: str) -> detail.SessionPage:
        rendered.append(id)
        return page_of(id)

    monkeypatch.setattr(detail, "_page_of", noted)
    address = f"/sessions/{runner.session.id}/now"
    beats(world, runner.session, 2)
    world.clock.advance(seconds=-15)  # 45 after the last one
    mark = ""
    counts = []
    for _ in range(3):
        answer = alice.get(address, headers={"If-None-Match": mark})
        mark = answer.headers.get("ETag", mark)
        counts.append(len(rendered))
        world.clock.advance(seconds=10)
    assert counts == [1, 1, 2]


def test_use_over_time_is_drawn_and_told(world: World, alice: Browser, runner: Runner) -> None:
    path = f"/sessions/{runner.session.id}"
    assert "Charts appear here" in alice.get(path).text
    beats(world, runner.session, 5)
    text = alice.get(path).text
    assert text.count('<svg viewBox="0 0 600 100"') == 2
    assert "0.5 cores now" in text
    assert f"{rounded_size(512)} now" in text
    assert f"of {rounded_size(600)}" in text
    assert "As a table" in text


def test_the_api_gives_the_same_figures(world: World, api: MakeApi, runner: Runner) -> None:
    beats(world, runner.session, 3)
    found = api("alice")("GET", f"/sessions/{runner.session.id}/usage").json
    assert found is not None
    assert [p["memory"] for p in found["points"]] == [2**29] * 3
    assert [p["cpu_percent"] for p in found["points"]][1:] == [50.0, 50.0]
    assert api("bob")("GET", f"/sessions/{runner.session.id}/usage").status_code == 404
    assert api("bob")("GET", f"/sessions/{runner.session.id}/timeline").status_code == 404


def test_the_timeline_from_the_request_to_the_end(
    world: World, alice: Browser, api: MakeApi, runner: Runner
) -> None:
    world.clock.advance(seconds=30)
    world.services.administration.record("admin", "session.extend", runner.session.id, "60 minutes")
    world.clock.advance(seconds=30)
    world.sessions.stop_all(ALICE, [runner.session.id])
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED")
    world.worker.poll()
    found = api("alice")("GET", f"/sessions/{runner.session.id}/timeline").json
    assert found is not None
    assert [(m["title"], m["detail"]) for m in found["moments"]] == [
        ("Requested", ""),
        ("Queued", "as job 1"),
        ("Started", "on n1"),
        ("Ready", ""),
        ("Extended", "by 60 minutes by admin"),
        ("End requested", "by you"),
        ("Ended", ""),
    ]
    text = alice.get(f"/sessions/{runner.session.id}").text
    assert "by 60 minutes by admin" in text
    assert "Launch again" in text
    assert "app-card" not in text
    assert f"/sessions/{runner.session.id}/end" not in text


def test_it_is_saved_as_a_preset_without_its_name(
    world: World, alice: Browser, api: MakeApi, runner: Runner
) -> None:
    path = f"/sessions/{runner.session.id}"
    assert alice.post(f"{path}/preset", {"preset": "daily run"}).status_code == 303
    assert "Saved as the preset daily run." in alice.get(path).text
    again = alice.post(f"{path}/preset", {"preset": "daily run"})
    assert (again.status_code, "You have a preset named daily run already." in again.text) == (
        409,
        True,
    )
    wrong = alice.post(f"{path}/preset", {"preset": "/"})
    assert wrong.status_code == 422
    ask = api("alice")
    (preset,) = ask("GET", "/presets").json["presets"]  # type: ignore[index]
    assert "name" not in preset["launch"]
    assert preset["launch"]["env"] == ["TOKEN_NAME"]
    made = ask("POST", f"{path}/preset", json={"name": "second"})
    assert made.status_code == 201
    assert ask("POST", f"{path}/preset", json={"name": "second"}).status_code == 409
    assert ask("POST", f"{path}/preset", json={"name": "/"}).json["errors"][0]["field"] == "name"  # type: ignore[index]
    launched = ask("POST", "/presets/second/launch").json
    assert launched is not None
    assert launched["sessions"][0]["preset"] == "second"


def test_extending_from_the_page_leads_back_to_it(
    world: World, alice: Browser, runner: Runner
) -> None:
    path = f"/sessions/{runner.session.id}"
    done = alice.post(f"{path}/keep", {"back": path})
    assert (done.status_code, done.headers["Location"]) == (303, path)
    done = alice.post(f"{path}/keep", {"back": "//evil.example.org"})
    assert done.headers["Location"] == "/sessions"
