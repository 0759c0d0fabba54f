"""A session that does not call back shows the last line of its log."""

from __future__ import annotations

import json

import pytest

from portal.core.session.session import Session
from portal.core.session.status import shown_reason
from tests.support.fakes import World
from tests.support.sessions import ALICE, REQUEST, poll_slurm, session_now

LINE = (
    "2026-11-24T04:00:00Z The portal cannot be reached (portal, port 8443: the portal's "
    "certificate is not for portal; `slipway init` renews it); trying again in 10.0 s\n"
)


def starting(world: World, log: bytes) -> Session:
    """A session that has been starting for half a minute."""
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[-1])
    poll_slurm(world)
    world.slurm.log = log
    world.clock.advance(seconds=30)
    return session


def shown(world: World, session: Session) -> str:
    """What its page says."""
    world.services.housekeeping.read_slow_starts()
    poll_slurm(world)
    reason = shown_reason(session_now(world, session), world.status.slurm_status(), world.clock())
    assert reason is not None
    return reason.text


def test_the_last_line_is_shown(world: World) -> None:
    session = starting(world, b"2026-11-24T04:00:00Z Beginning\n" + LINE.encode())
    assert shown(world, session).startswith(
        "Its log says: The portal cannot be reached (portal, port 8443: the portal's certificate"
    )
    world.slurm.log += b"another line\n"
    assert shown(world, session) == "Its log says: another line"


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (b"", "The container is starting."),
        (b"\n \n", "The container is starting."),
        (
            b"\x1b[31m<b>red</b>\x1b[0m \xff\x00",
            "Its log says: <b>red</b> \N{REPLACEMENT CHARACTER}",
        ),
        (b"\xe2\x80\xaegnp", "Its log says: gnp"),
    ],
)
def test_whatever_is_in_the_log(world: World, log: bytes, text: str) -> None:
    assert shown(world, starting(world, log)) == text


def test_it_is_bounded(world: World) -> None:
    text = shown(world, starting(world, b"x" * 100_000))
    assert len(text) == 200 and text.endswith("…")


def test_a_session_that_starts_at_once_is_not_asked(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[-1])
    poll_slurm(world)
    world.slurm.log = b"something\n"
    assert shown(world, session) == "The container is starting."


def test_the_runner_is_told_when_to_give_up(world: World) -> None:
    world.launch(ALICE, REQUEST)
    assert json.loads(world.slurm.jobs[-1].spec)["patience_seconds"] == 300
