"""A server of JupyterHub's from its start to its end, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemLoader
from jupyterhub.user import User
from sqlmodel import Session as Database
from tornado.web import HTTPError

from portal.client import Client, NoAnswer
from portal.core.apps.access import AppState
from portal.core.session.session import OVER, Session, State
from portal.hub import TEMPLATES
from portal.hub import spawner as spawners
from portal.hub.authenticator import TOKEN
from portal.hub.spawner import SlipwaySpawner
from portal.store.tables import SessionRow
from tests.support.fakes import World
from tests.unit.hub.conftest import SERVERS, NewSpawner

PREFIX = "/user/alice/"
OPTIONS: dict[str, Any] = {
    "environment": "python",
    "resources": {"cpus": 1, "memory": "600m"},
}
SOON = 20.0


def sessions(world: World) -> list[Session]:
    """The live sessions with a server of JupyterHub's."""
    return [session for session in world.store.live() if session.hub_prefix]


async def until(probe: Callable[[], Any]) -> Any:
    """Wait until it is there."""
    async with asyncio.timeout(SOON):
        while (found := probe()) is None:
            await asyncio.sleep(0.02)
        return found


def only(world: World) -> Session | None:
    """The session, once it has a job."""
    return next((one for one in sessions(world) if one.job_id), None)


def run(world: World, session: Session) -> None:
    """Slurm starts the job, and its gateway calls back."""
    job = next(job for job in world.slurm.jobs if job.name == session.id)
    world.slurm.start(job)
    world.worker.poll()
    world.store.change(
        session.id,
        {State.STARTING, State.PENDING},
        address="10.0.0.1",
        port=40123,
        ready=world.clock(),
        apps=("jupyterlab", "jupyterhub"),
    )
    from portal.core.session.transitions import ready  # noqa: PLC0415

    now = world.store.get(session.id)
    assert now is not None
    proof = {"job_id": session.job_id, "node": "n1", "address": "10.0.0.1"}
    world.store.apply(
        session.id,
        ready(now, proof, 40123, ("jupyterlab", "jupyterhub"), world.clock()),  # type: ignore[arg-type]
    )


def answer(world: World, session: Session) -> None:
    """The server in it answers."""
    now = world.store.get(session.id)
    assert now is not None
    world.services.app_reports.note_app(now, "jupyterhub", AppState.READY)


def end(world: World, session: Session, state: str, code: int = 0) -> None:
    """The session's job ends."""
    job = next(job for job in world.slurm.jobs if job.name == session.id)
    world.slurm.finish(job, state, code)
    for _ in range(3):
        world.worker.poll()
        world.clock.advance(seconds=10)


async def begun(world: World, made: SlipwaySpawner) -> tuple[asyncio.Task[str], Session]:
    """Begin to start a server, until its session has a job."""
    made.user_options = OPTIONS
    starting = asyncio.create_task(made.start())
    return starting, await until(lambda: only(world))


async def started(world: World, made: SlipwaySpawner) -> Session:
    """Start a server; returns its session."""
    starting, session = await begun(world, made)
    run(world, session)
    answer(world, session)
    assert await asyncio.wait_for(starting, SOON) == SERVERS
    return session


def do(work: Coroutine[Any, Any, None]) -> None:
    """Run it in an event loop."""
    asyncio.run(work)


def test_a_server_from_start_to_stop(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        assert await made.poll() == 0
        session = await started(world, made)
        assert session.hub_prefix == PREFIX
        assert await made.poll() is None
        assert made.get_state() == {"session": session.id}
        assert await made.get_url() == SERVERS + PREFIX
        assert world.store.hub_env(session.id)["JUPYTERHUB_API_TOKEN"] == "secret1"
        assert world.store.hub_env(session.id)["JUPYTERHUB_SERVICE_PREFIX"] == PREFIX
        stopping = asyncio.create_task(made.stop())
        await until(lambda: world.store.get(session.id).stop_requested)  # type: ignore[union-attr]
        end(world, session, "CANCELLED")
        await asyncio.wait_for(stopping, SOON)
        assert world.store.get(session.id).state in OVER  # type: ignore[union-attr]

    do(work())


def test_progress_tells_the_reason_and_the_steps(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        made.user_options = OPTIONS
        starting = asyncio.create_task(made.start())
        told: list[str] = []

        async def listen() -> None:
            async for event in made.progress():
                told.append(event["message"])

        session = await until(lambda: only(world))
        listening = asyncio.create_task(listen())
        await until(lambda: told or None)
        run(world, session)
        await until(lambda: "server is starting" in told[-1] or None)
        answer(world, session)
        await asyncio.wait_for(starting, SOON)
        await asyncio.wait_for(listening, SOON)
        assert told[-1] == "The session runs; the server is starting"

    do(work())


def test_cancelled_while_it_waits_no_session_is_left(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        starting, session = await begun(world, made)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]

    do(work())


def test_cancelled_in_the_middle_of_a_launch_it_gives_way_at_once(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterHub waits for a second, and then calls stop() only if poll() says that it lives."""
    go_on = threading.Event()
    launch = Client.launch

    def slow(*args: Any, **kwargs: Any) -> Any:
        go_on.wait(SOON)
        return launch(*args, **kwargs)

    monkeypatch.setattr(Client, "launch", slow)

    async def work() -> None:
        made = spawner()
        made.user_options = OPTIONS
        starting = asyncio.create_task(made.start())
        await until(lambda: made._launching)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(starting, 0.5)
        assert await made.poll() is None
        stopping = asyncio.create_task(made.stop())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        go_on.set()
        session = await until(lambda: only(world))
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]
        end(world, session, "CANCELLED")
        await asyncio.wait_for(stopping, SOON)

    do(work())


@pytest.mark.parametrize("launched", [True, False])
def test_a_cancelled_start_lives_until_it_is_stopped(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch, launched: bool
) -> None:
    """Otherwise JupyterHub says "stopped" while a launch may still be on its way (204, not 202)."""
    monkeypatch.setattr(spawners, "LATE", 0.5)

    async def work() -> None:
        made = spawner()
        if launched:
            starting, session = await begun(world, made)
        else:
            made.user_options = OPTIONS
            starting = asyncio.create_task(made.start())
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        if launched:
            await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]
            end(world, session, "CANCELLED")
        assert made._abandoning is not None
        await asyncio.wait([made._abandoning])
        assert await made.poll() is None
        stopping = asyncio.create_task(made.stop())
        await asyncio.sleep(0.2)
        assert not stopping.done()
        await asyncio.wait_for(stopping, SOON)
        made.clear_state()  # as JupyterHub does afterwards
        assert await made.poll() is not None

    do(work())


def test_a_session_that_the_portal_has_lost_has_not_ended(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same session is adopted later; only after an hour it counts as gone."""

    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        with Database(world.engine) as db:
            row = db.get(SessionRow, session.id)
            assert row is not None
            kept = row.model_dump()
            db.delete(row)
            db.commit()
        for _ in range(5):
            assert await made.poll() is None
        clock = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: clock + 3700)
        assert await made.poll() == 1
        with Database(world.engine) as db:
            db.add(SessionRow(**kept))
            db.commit()
        assert await made.poll() is None
        assert made.get_state()["session"] == session.id

    do(work())


def test_a_killed_hub_finds_its_running_server_again(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        session = await started(world, spawner())
        again = spawner()
        again.load_state({})
        assert await again.poll() is None
        assert again.get_state() == {"session": session.id}

    do(work())


def test_a_start_that_a_killed_hub_forgot_is_ended(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        starting, session = await begun(world, made)
        assert await spawner().poll() == 1
        assert world.store.get(session.id).stop_requested  # type: ignore[union-attr]
        starting.cancel()

    do(work())


def test_while_nobody_knows_the_server_lives(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.client.PAUSE", 0.01)

    async def work() -> None:
        made = spawner()
        await started(world, made)
        made.portal_url = "http://127.0.0.1:1"
        assert await made.poll() is None

    do(work())


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [("OUT_OF_MEMORY", 0, "memory"), ("TIMEOUT", 0, "time limit"), ("NODE_FAIL", 0, "node")],
)
def test_an_end_before_it_answers_is_explained(
    world: World, spawner: NewSpawner, state: str, code: int, text: str
) -> None:
    async def work() -> None:
        made = spawner()
        starting, session = await begun(world, made)
        run(world, session)
        end(world, session, state, code)
        with pytest.raises(HTTPError) as caught:
            await asyncio.wait_for(starting, SOON)
        assert text in (caught.value.log_message or "")
        assert await made.poll() is not None

    do(work())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"environment": "nope", "resources": {"memory": "1g"}}, "environment"),
        ({"environment": "python", "resources": {"cpus": 9999, "memory": "1g"}}, "cpus"),
        ({"environment": "python", "resources": {"memory": "1g"}, "account": "law"}, "account"),
        ({"environment": "python", "resources": {"memory": "1g"}, "qos": "no such"}, "qos"),
        ({"environment": "python", "resources": {"memory": "1g"}, "no_such": 1}, "no_such"),
        ({"environment": "python"}, "resources"),
        ({"environment": "python", "resources": "x"}, "resources"),
    ],
)
def test_wrong_options_are_refused_by_their_field(
    world: World, spawner: NewSpawner, options: dict[str, Any], field: str
) -> None:
    world.status.save_partitions(world.scheduler.partitions())
    world.status.save_limits(world.scheduler.limits())

    async def work() -> None:
        made = spawner()
        made.user_options = options
        with pytest.raises(HTTPError) as caught:
            await made.start()
        assert caught.value.status_code == 422
        assert field in (caught.value.log_message or "")
        assert sessions(world) == []

    do(work())


def test_a_named_server_has_its_own_session(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        await started(world, spawner())
        made = spawner(server="second")
        made.user_options = OPTIONS
        starting = asyncio.create_task(made.start())
        session = await until(
            lambda: next((s for s in sessions(world) if s.hub_prefix == f"{PREFIX}second/"), None)
        )
        assert len(sessions(world)) == 2
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]

    do(work())


def test_an_image_without_jupyterhub_says_so(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        starting, session = await begun(world, made)
        run(world, session)
        world.store.change(session.id, {State.RUNNING}, apps=("terminal",))
        with pytest.raises(HTTPError) as caught:
            await asyncio.wait_for(starting, SOON)
        assert "no jupyterhub-singleuser" in (caught.value.log_message or "")

    do(work())


def test_the_end_of_the_last_session_is_told_also_by_a_new_hub(
    world: World, spawner: NewSpawner
) -> None:
    async def work() -> None:
        assert await spawner().last_end() == ""
        session = await started(world, spawner())
        assert await spawner().last_end() == ""
        end(world, session, "OUT_OF_MEMORY")
        text = await spawner().last_end()
        assert text.startswith("The session needed more memory than the 600 MB")
        assert text in unescape(await spawner().form())
        assert await spawner(server="other").last_end() == ""

    do(work())


def test_an_end_by_its_user_needs_no_notice(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        stopping = asyncio.create_task(made.stop())
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]
        end(world, session, "CANCELLED")
        await asyncio.wait_for(stopping, SOON)
        assert await spawner().last_end() == ""

    do(work())


def test_jupyterhubs_page_tells_it(world: World, spawner: NewSpawner) -> None:
    """The template renders as JupyterHub renders it, around JupyterHub's own."""
    environment = Environment(
        autoescape=True,
        enable_async=True,
        loader=ChoiceLoader(
            [
                FileSystemLoader([TEMPLATES]),
                DictLoader(
                    {
                        "templates/not_running.html": "{% block message %}"
                        "{{ 'failed' if failed else 'not running' }}{% endblock %}"
                    }
                ),
            ]
        ),
    )

    async def work() -> None:
        session = await started(world, spawner())
        end(world, session, "NODE_FAIL")
        user = SimpleNamespace(spawners={"": spawner()})
        page = environment.get_template("not_running.html")
        text = await page.render_async(user=user, server_name="")
        assert '<p id="slipway-ended">The compute node n1 failed. Launch' in text
        assert text.rstrip().endswith("not running")
        failed = await page.render_async(user=user, server_name="", failed=True)
        assert failed.strip() == "failed"

    do(work())


def test_a_stop_goes_on_while_the_portal_is_away(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterHub forgets the server after stop(), so it must not return before."""
    monkeypatch.setattr("portal.client.PAUSE", 0.01)
    monkeypatch.setattr("portal.hub.spawner.PATIENCE", 0.05)

    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        portal, made.portal_url = made.portal_url, "http://127.0.0.1:1"
        stopping = asyncio.create_task(made.stop(now=True))
        await asyncio.sleep(0.3)
        assert not stopping.done()
        made.portal_url = portal
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]
        end(world, session, "CANCELLED")
        await asyncio.wait_for(stopping, SOON)

    do(work())


def test_a_server_that_ends_by_itself_ends_its_session(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        now = world.store.get(session.id)
        assert now is not None
        world.services.app_reports.note_app(now, "jupyterhub", AppState.STOPPED)
        assert await made.poll() == 1
        assert world.store.get(session.id).stop_requested  # type: ignore[union-attr]

    do(work())


def test_the_sites_settings_reach_the_session(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner(
            environment={"SITE": "x", "JUPYTERHUB_X": "y"}, mem_limit="512M", cpu_limit=1
        )
        made.user_options = {"environment": "python"}
        starting = asyncio.create_task(made.start())
        session = await until(lambda: only(world))
        assert (session.cpus, session.memory_mb, session.env_names) == (1, 512, ("SITE",))
        assert world.store.hub_env(session.id)["JUPYTERHUB_X"] == "y"
        starting.cancel()

    do(work())


def test_a_new_login_is_used_at_once(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token in auth_state is replaced whenever the user logs in."""

    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        token = (await made.user.get_auth_state())[TOKEN]
        state = {TOKEN: "gone"}

        async def auth_state(_user: User) -> dict[str, str]:
            return state

        monkeypatch.setattr(User, "get_auth_state", auth_state)
        end(world, session, "TIMEOUT")
        assert await made.poll() is None  # nobody knows
        state[TOKEN] = token
        assert await made.poll() == 0

    do(work())


def test_a_start_outlives_a_log_out_and_the_next_log_in(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers wait in Slurm's queue for days; each log-in has another token, a log-out none."""

    async def work() -> None:
        made = spawner()
        starting, session = await begun(world, made)
        state = await made.user.get_auth_state()
        now: dict[str, str] = {}

        async def auth_state(_user: User) -> dict[str, str]:
            return now

        monkeypatch.setattr(User, "get_auth_state", auth_state)
        world.services.logins.revoke_all("alice", "alice", ("token",))
        run(world, session)
        answer(world, session)
        for now in ({}, state):  # noqa: B007  # read by the function above
            await asyncio.sleep(0.5)
            assert not starting.done(), starting.exception()
        person = world.services.logins.newcomer("alice")
        secret, _login = world.services.logins.make_token(person, "new", None, None)
        now = {TOKEN: secret}
        assert await asyncio.wait_for(starting, SOON) == SERVERS

    do(work())


def test_a_stop_that_was_asked_for_outlives_a_log_out(world: World, spawner: NewSpawner) -> None:
    """JupyterHub can stop the servers of those who log out (shutdown_on_logout)."""

    async def work() -> None:
        made = spawner()
        session = await started(world, made)
        stopping = asyncio.create_task(made.stop())
        await until(lambda: world.store.get(session.id).stop_requested or None)  # type: ignore[union-attr]
        world.services.logins.revoke_all("alice", "alice", ("token",))
        await asyncio.wait_for(stopping, SOON)

    do(work())


def test_a_service_token_that_is_revoked_ends_a_start(world: World, spawner: NewSpawner) -> None:
    async def work() -> None:
        made = spawner()
        starting, _session = await begun(world, made)
        made.service_token = "slipway_revoked"
        with pytest.raises(HTTPError) as caught:
            await asyncio.wait_for(starting, SOON)
        assert caught.value.status_code == 401

    do(work())


def test_nothing_is_left_to_stop_after_a_start_while_the_portal_is_away(
    spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterHub polls after a failed start, and would wait for stop()."""
    monkeypatch.setattr("portal.client.PAUSE", 0.01)

    async def work() -> None:
        made = spawner(portal_url="http://127.0.0.1:1")
        made.user_options = OPTIONS
        with pytest.raises(HTTPError) as caught:
            await made.start()
        assert caught.value.status_code == 503
        assert await made.poll() == 0

    do(work())


def test_after_a_lost_answer_the_session_may_exist(
    world: World, spawner: NewSpawner, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Client.launch

    def lost(*args: Any) -> Any:
        launch(*args)
        raise NoAnswer("The portal does not answer.")

    monkeypatch.setattr(Client, "launch", lost)

    async def work() -> None:
        made = spawner()
        made.user_options = OPTIONS
        with pytest.raises(HTTPError):
            await made.start()
        session = await until(lambda: only(world))
        assert await made.poll() == 1
        assert world.store.get(session.id).stop_requested  # type: ignore[union-attr]

    do(work())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "user_options: send an object"),
        ("x", "user_options: send an object"),
        ({"resources": {"cpus": float("nan")}}, "resources.cpus: numbers must be finite"),
        ({"mounts": [{"folder": float("inf")}]}, "mounts.0.folder: numbers must be finite"),
    ],
)
def test_options_that_cannot_be_sent_are_refused(
    world: World, spawner: NewSpawner, options: Any, words: str
) -> None:
    async def work() -> None:
        made = spawner()
        with pytest.raises(HTTPError) as caught:
            await made._run_apply_user_options(options)
        assert caught.value.status_code == 422
        assert words in (caught.value.log_message or "")
        made.user_options = options
        with pytest.raises(HTTPError, match=words):
            await made.start()
        assert await made.poll() == 0

    do(work())
    assert sessions(world) == []
