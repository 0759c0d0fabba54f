"""Reports accepted from runners, and the authentication of runners."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from portal.core.apps.access import AppState
from portal.core.auth.person import Person
from portal.core.session.session import Session, State
from portal.core.session_job.runner_protocol import Heartbeat, fingerprint
from portal.errors import NotFound
from tests.support.fakes import APPS, World
from tests.support.idle_sessions import pass_minutes, set_idle_rule
from tests.support.sessions import USAGE_REPORT
from tests.support.transactions import transactions
from tests.unit.web.conftest import Api, Browser, Runner

Launched = Callable[..., Runner]
ALICE = Person("alice", False, "x")
READY: dict[str, object] = {"job_id": "1", "node": "n1", "port": 40123, "csr": "PEM"}


def test_ready_certifies_the_gateway_and_names_the_apps(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "jupyterlab")
    answer = runner.ready()
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["certificate"].startswith("certificate of")
    assert [order["name"] for order in answer.json["start"]] == ["jupyterlab"]
    assert world.store.get(runner.session.id).state is State.RUNNING  # type: ignore[union-attr]


@pytest.mark.parametrize("owner", ["alice", "admin"])
def test_apps_found_in_an_image_are_stored(world: World, launched: Launched, owner: str) -> None:
    """M4: for itself; for everybody only if it is an administrator's."""
    runner = launched(owner)
    spec = json.loads(runner.job.spec)
    assert set(spec["detect"]) == set(APPS)
    assert spec["apps"] == ["any", "board", "jupyterhub", "jupyterlab", "terminal"]
    world.slurm.start(runner.job)
    message = READY | {"apps": ["terminal", "jupyterlab", "elsewhere"]}
    assert runner("ready", message).status_code == 200
    session = world.store.get(runner.session.id)
    assert session is not None
    assert session.apps == ("terminal", "jupyterlab")
    assert [spec.name for spec in world.apps.offered(session)] == ["jupyterlab", "terminal"]
    image = (session.environment, session.version)
    believed = {image: ("terminal", "jupyterlab")} if owner == "admin" else {}
    assert world.access_store.image_apps() == believed
    with pytest.raises(NotFound):
        world.apps.open_app(Person(owner, owner == "admin", "a"), session.id, "notebook")


def test_usage_and_apps_are_stored(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "terminal")
    runner.ready()
    answer = runner("usage", USAGE_REPORT | {"apps": {"terminal": "starting"}})
    assert answer.json == {
        "name": runner.session.name,
        "kept": "Everything in this session is deleted.",
        "seconds_left": 3600,
        "unused": False,
        "ready": True,
        "next": 10,
        "authorities": fingerprint("server ca", "client ca"),
    }
    report = {"state": "failed", "message": "no", "log": "last words"}
    assert runner("apps/terminal", report).json == {}
    (opened,) = world.apps.opened(runner.session.id)
    assert (opened.state, opened.message, opened.log) == (AppState.FAILED, "no", "last words")
    session = world.store.get(runner.session.id)
    assert session is not None
    assert session.memory_used == 123


def test_a_session_learns_new_authorities(world: World, launched: Launched) -> None:
    runner = launched()
    assert runner("authorities", {"csr": "PEM"}).status_code == 409  # Slurm has not confirmed it
    runner.ready()
    answer = runner("authorities", {"csr": "PEM"})
    assert answer.json == {
        "certificate": f"certificate of {runner.session.id}",
        "callback_ca": "server ca",
        "client_ca": "client ca",
    }
    assert runner("authorities", {"csr": "x" * 16_385}).status_code == 422
    stranger = runner("authorities", {"csr": "PEM"}, Authorization="Bearer guessed")
    assert stranger.status_code == 401


def test_an_apps_own_details_are_stored(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "terminal")
    runner.ready()
    # A heartbeat may arrive first, without this information.
    runner("usage", USAGE_REPORT | {"apps": {"terminal": "ready"}})
    runner("apps/terminal", {"state": "ready", "details": "ssh-ed25519 AAAA"})
    (opened,) = world.apps.opened(runner.session.id)
    assert (opened.state, opened.details) == (AppState.READY, "ssh-ed25519 AAAA")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("ready", READY | {"port": 0}, "port"),
        ("ready", READY | {"port": "1"}, "port"),
        ("ready", READY | {"node": "n1; id"}, "node"),
        ("ready", READY | {"job_id": "1 2"}, "job_id"),
        ("ready", READY | {"state": "RUNNING"}, "state"),
        ("ready", {"port": 1}, "job_id"),
        ("ready", READY | {"apps": ["../x"]}, "apps.0"),
        ("usage", USAGE_REPORT | {"cpu_seconds": -1}, "cpu_seconds"),
        ("usage", USAGE_REPORT | {"memory_bytes": "much"}, "memory_bytes"),
        ("usage", USAGE_REPORT | {"apps": {"terminal": "gone"}}, "apps.terminal"),
        ("usage", USAGE_REPORT | {"owner": "bob"}, "owner"),
        ("apps/terminal", {"state": "wanted"}, "state"),
        ("apps/terminal", {"state": "ready", "log": "x" * 65_537}, "log"),
        ("apps/terminal", {"state": "ready", "details": "x" * 4097}, "details"),
    ],
)
def test_invalid_reports_name_their_field(
    world: World, launched: Launched, path: str, body: dict[str, object], field: str
) -> None:
    runner = launched()
    answer = runner(path, body)
    assert answer.status_code == 422
    assert answer.json and field in [error["field"] for error in answer.json["errors"]]
    assert world.store.get(runner.session.id) == runner.session


@pytest.mark.parametrize("path", ["ready", "usage", "apps/terminal"])
def test_only_the_sessions_own_token_is_accepted(launched: Launched, path: str) -> None:
    hers, his = launched("alice"), launched("bob")
    for authorization in (
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {his.token}",
        f"Basic {hers.token}",
    ):
        assert hers(path, READY, Authorization=authorization).status_code == 401


def test_browsers_never_reach_the_callbacks(launched: Launched) -> None:
    runner = launched()
    answer = runner.client.post(
        f"/runner/v1/sessions/{runner.session.id}/usage",
        json=USAGE_REPORT,
        base_url="http://localhost:8080",
        headers={"Authorization": f"Bearer {runner.token}"},
    )
    assert answer.status_code == 404


def test_runners_reach_no_other_routes(launched: Launched) -> None:
    runner = launched()
    for path in ("/login", "/api/v1/openapi.json", "/healthz"):
        headers = {"X-Slipway-Frontend": "runners"}
        answer = runner.client.get(path, base_url="http://localhost:8080", headers=headers)
        assert answer.status_code == 404


def test_a_job_on_another_node_is_refused(world: World, launched: Launched) -> None:
    runner = launched()
    world.slurm.start(runner.job, "n2")
    assert runner("ready", READY | {"job_id": str(runner.job.id)}).status_code == 401


def test_callbacks_of_an_ended_session_get_410(world: World, launched: Launched) -> None:
    runner = launched()
    world.sessions.stop(ALICE, runner.session.id)
    assert runner("usage", USAGE_REPORT).status_code == 410


def test_the_answer_has_the_time_limit_or_the_end_of_an_unused_session(
    world: World, launched: Launched
) -> None:
    runner = launched(mounts=[{"folder": "home", "read_only": True}])
    runner.ready()
    world.clock.advance(minutes=50)
    answer = runner("usage", USAGE_REPORT).json
    assert answer
    assert (answer["seconds_left"], answer["unused"]) == (600, False)
    world.clock.advance(minutes=20)
    late = runner("usage", USAGE_REPORT).json
    assert late
    assert late["seconds_left"] == 0
    set_idle_rule(world, 40)
    other = launched()
    other.ready()
    pass_minutes(world, other.session, 35)
    unused = other("usage", USAGE_REPORT).json
    assert unused
    assert unused["unused"] is True
    assert 0 < unused["seconds_left"] <= 5 * 60


def test_a_kill_has_its_program_and_time_and_each_has_a_notice_of_its_own(
    world: World, launched: Launched, alice: Browser, api: Callable[[str], Api]
) -> None:
    runner = launched(name="mine1")
    runner.ready()
    assert "was stopped" not in alice.get("/sessions/rows").text
    kill = {"oom_kills": 1, "oom_program": "python3 (a notebook kernel)", "oom_age": 30}
    assert runner("usage", USAGE_REPORT | kill).status_code == 200
    known = world.store.get(runner.session.id)
    assert known
    assert known.oom_at == world.clock() - timedelta(seconds=30)
    page = alice.get("/sessions/rows").text
    assert "python3 (a notebook kernel) was stopped at" in page
    assert "it wanted more than the 600 MB of this session." in page
    assert f'href="/sessions/new?from={runner.session.id}&amp;more=memory#resources"' in page
    assert "Launch with 1.5 GB" in page
    # The same kill, reported again later, is not another one.
    world.clock.advance(seconds=60)
    runner("usage", USAGE_REPORT | kill)
    again = world.store.get(runner.session.id)
    assert again
    assert again.oom_at == known.oom_at
    assert alice.post(f"/sessions/{runner.session.id}/dismiss/memory").status_code == 303
    assert "was stopped at" not in alice.get("/sessions/rows").text
    runner("usage", USAGE_REPORT | {"oom_kills": 2, "oom_program": "", "oom_age": 0})
    page = alice.get("/sessions/rows").text
    assert "A process was stopped at" in page
    assert "2 processes were stopped so far." in page
    seen = api("alice")("GET", f"/sessions/{runner.session.id}").json
    assert seen
    assert seen["usage"]["oom_seen"] is None
    assert seen["usage"]["oom_kills"] == 2


def test_a_kill_can_be_dismissed_over_the_api(
    launched: Launched, api: Callable[[str], Api]
) -> None:
    runner = launched()
    runner.ready()
    runner("usage", USAGE_REPORT | {"oom_kills": 1})
    path = f"/sessions/{runner.session.id}/dismiss"
    assert api("bob")("POST", path, json={"notice": "memory"}).status_code == 404
    answer = api("alice")("POST", path, json={"notice": "memory"}).json
    assert answer
    assert answer["usage"]["oom_seen"] is not None


@pytest.mark.parametrize(
    "wrong", [{"oom_program": "a\nb"}, {"oom_program": "x" * 65}, {"oom_age": -1}]
)
def test_a_kill_is_validated(launched: Launched, wrong: dict[str, object]) -> None:
    runner = launched()
    runner.ready()
    assert runner("usage", USAGE_REPORT | {"oom_kills": 1} | wrong).status_code == 422


def test_reports_are_rare_unless_their_owner_has_a_page_open(
    world: World, launched: Launched, alice: Browser
) -> None:
    runner = launched()
    runner.ready()
    world.clock.advance(minutes=10)
    assert _next(runner) == 30
    alice.get("/sessions")
    assert _next(runner) == 10
    world.clock.advance(minutes=2)
    assert _next(runner) == 10
    world.clock.advance(minutes=1)
    assert _next(runner) == 30
    world.clock.advance(minutes=35)
    assert _next(runner) == 10  # it ends soon


def _report(runner: Runner, **changes: object) -> Session:
    """Report without the limit of reports per second; returns the session as stored then."""
    calls = runner.world.services.runner_calls
    session = calls.authenticate(runner.session.id, runner.token)
    calls.record_usage(session, Heartbeat.model_validate(USAGE_REPORT | changes))
    known = runner.world.store.get(session.id)
    assert known is not None
    return known


def _next(runner: Runner) -> float:
    calls = runner.world.services.runner_calls
    session = calls.authenticate(runner.session.id, runner.token)
    return calls.record_usage(session, Heartbeat.model_validate(USAGE_REPORT))["next"]


def test_figures_that_pages_show_alike_are_not_stored(world: World, launched: Launched) -> None:
    runner = launched()
    runner.ready()
    _report(runner, cpu_seconds=0.0, memory_bytes=1000)
    world.clock.advance(seconds=10)
    _report(runner, cpu_seconds=1.0, memory_bytes=1000)
    before = world.services.change_numbers("alice")
    world.clock.advance(seconds=10)
    known = _report(runner, cpu_seconds=2.05, memory_bytes=990)
    assert (known.cpu_percent, known.memory_used, known.memory_peak) == (10.0, 1000, 1000)
    assert (known.cpu_seconds, known.usage_at) == (2.05, world.clock())
    assert world.services.change_numbers("alice") == before
    world.clock.advance(seconds=10)
    known = _report(runner, cpu_seconds=4.05, memory_bytes=1030)
    assert (known.cpu_percent, known.memory_used, known.memory_peak) == (20.0, 1030, 1030)
    assert world.services.change_numbers("alice") != before


def test_the_end_of_a_silence_is_a_change(world: World, launched: Launched) -> None:
    """The figures are the same; only the notice of the silence goes away."""
    runner = launched()
    runner.ready()
    _report(runner, cpu_seconds=1.0)
    numbers = world.services.change_numbers
    for silence, is_change in ((70, False), (80, True), (10, False)):
        world.clock.advance(seconds=silence)
        world.force(runner.session.id, cpu_percent=0.0)
        before = numbers("alice"), numbers("bob")
        _report(runner, cpu_seconds=1.0)
        assert (numbers("alice") != before[0], numbers("bob") != before[1]) == (is_change, False)


def test_a_computation_between_two_reports_is_use(world: World, launched: Launched) -> None:
    runner = launched()
    runner.ready()
    set_idle_rule(world, 60)
    _report(runner)
    for peak in ({"peak_cpu_percent": 10.0}, {"peak_gpu_percent": 2.0}):
        world.clock.advance(seconds=100)
        known = _report(runner, peak_cpu_percent=9.0, peak_gpu_percent=1.0)
        assert known.last_used is not None
        assert known.last_used < world.clock()
        known = _report(runner, peak_memory_bytes=5000, **peak)
        assert (known.last_used, known.memory_peak) == (world.clock(), 5000)


def test_two_reports_close_together_are_no_use(world: World, launched: Launched) -> None:
    """The second was sent at once, for a kill: 20 ms in a tenth of a second are 20 %."""
    runner = launched()
    runner.ready()
    set_idle_rule(world, 60)
    _report(runner, cpu_seconds=1.0)
    world.clock.advance(seconds=100)
    before = _report(runner, cpu_seconds=1.0).last_used
    world.clock.advance(seconds=0.1)
    assert _report(runner, cpu_seconds=1.02).last_used == before
    world.clock.advance(seconds=10)
    assert _report(runner, cpu_seconds=3.02).last_used == world.clock()


def test_a_heartbeat_is_two_reads_and_one_write(world: World, launched: Launched) -> None:
    runner = launched()
    world.apps.open_app(ALICE, runner.session.id, "terminal")
    runner.ready()
    report = USAGE_REPORT | {"apps": {"terminal": "ready"}}
    runner("usage", report)
    world.clock.advance(seconds=10)
    with transactions(world) as begun:
        assert runner("usage", report).status_code == 200
    assert begun == ["read", "read", "write"]
