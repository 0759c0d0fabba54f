"""Messages by e-mail: once, bounded, and ended by a link."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from portal.config.mail import MailSettings
from portal.core.interfaces.mail import MailServer, MailUnavailable
from portal.core.mail.messages import Mail, Occasion
from portal.core.session.session import State
from portal.errors import NotFound
from portal.services.mail import Mailer
from tests.support.fakes import World
from tests.support.followed_jobs import follow_queue, queue_job
from tests.support.sessions import ALICE, BOB, REQUEST, make_ready, poll_slurm

ALL = tuple(Occasion)
SETTINGS = MailSettings(
    host="mail.example.org", sender="slipway@example.org", recipient="{user}@example.org",
    per_hour=5,
)  # fmt: skip


@dataclass
class Outbox(MailServer):
    """A mail server that keeps what it is given, unless it is away."""

    away: bool = False
    mails: list[tuple[str, Mail, str]] = field(default_factory=list)

    def send(self, recipient: str, mail: Mail, stop: str) -> None:
        if self.away:
            raise MailUnavailable("away")
        self.mails.append((recipient, mail, stop))

    @property
    def subjects(self) -> list[str]:
        return [mail.subject for _, mail, _ in self.mails]


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def mailer(world: World, outbox: Outbox) -> Mailer:
    stores = world.systems.stores
    url = "https://portal.example.org"
    made = Mailer(
        stores.mail, stores.sessions, stores.jobs, outbox, SETTINGS, url, lambda: "key", world.clock
    )
    made.choose("alice", ALL)
    return made


def told(mailer: Mailer) -> None:
    mailer.look()
    mailer.send()


def ended(world: World) -> None:
    """Let the worker read the ends of jobs from accounting."""
    follow_queue(world)
    world.clock.advance(seconds=5)
    world.worker.settle()


def fail(world: World, numbers: Iterable[int]) -> None:
    jobs = [queue_job(world, number) for number in numbers]
    for job in jobs:
        world.slurm.start(job)
    follow_queue(world)
    for job in jobs:
        world.slurm.finish(job, "FAILED", 1)
    ended(world)


def end_by_time(world: World) -> None:
    world.slurm.finish(world.slurm.jobs[-1], "TIMEOUT")
    poll_slurm(world)


def test_a_session_is_told_of_once(world: World, mailer: Mailer, outbox: Outbox) -> None:
    session = world.launch(ALICE, REQUEST)
    world.clock.advance(minutes=3)
    make_ready(world, session)
    for _ in range(3):
        told(mailer)
        world.clock.advance(seconds=10)
    assert outbox.subjects == [f"{session.name} has started"]
    recipient, mail, stop = outbox.mails[0]
    assert recipient == "alice@example.org"
    assert mail.text.endswith(f"https://portal.example.org/sessions/{session.id}")
    assert stop.startswith("https://portal.example.org/mail/stop/alice/")
    end_by_time(world)
    told(mailer)
    assert outbox.subjects[1:] == [f"{session.name} has ended"]
    assert "time limit" in outbox.mails[1][1].text


def test_nobody_is_told_of_what_they_see_or_do(
    world: World, mailer: Mailer, outbox: Outbox
) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    told(mailer)
    world.sessions.stop(ALICE, session.id)
    world.slurm.finish(world.slurm.jobs[-1], "CANCELLED by 1003")
    poll_slurm(world)
    make_ready(world, world.launch(BOB, REQUEST))
    told(mailer)
    assert outbox.mails == []


def test_only_what_was_chosen(world: World, mailer: Mailer, outbox: Outbox) -> None:
    mailer.choose("alice", [Occasion.STARTED])
    make_ready(world, world.launch(ALICE, REQUEST))
    end_by_time(world)
    told(mailer)
    assert outbox.mails == []
    assert mailer.choice("alice") == {Occasion.STARTED}
    mailer.choose("alice", [])
    assert mailer.choice("alice") == frozenset()


def test_an_array_is_one_message_when_none_of_its_tasks_is_left(
    world: World, mailer: Mailer, outbox: Outbox
) -> None:
    tasks = [queue_job(world, 20 + n, array=20, tasks=str(n)) for n in range(4)]
    alone = queue_job(world, 30)
    for job in (*tasks, alone):
        world.slurm.start(job)
    follow_queue(world)
    for job in tasks[:3]:
        world.slurm.finish(job, "COMPLETED")
    world.slurm.finish(alone, "FAILED", 7)
    ended(world)
    told(mailer)
    assert len(outbox.subjects) == 1
    assert outbox.subjects[0].endswith("(30) has ended")
    assert "exit code 7" in outbox.mails[0][1].text
    world.slurm.finish(tasks[3], "COMPLETED")
    ended(world)
    told(mailer)
    assert outbox.subjects[1:] == [outbox.subjects[-1]]
    assert outbox.subjects[-1].endswith("(20) has ended: all tasks")


def test_many_are_one_mail_and_an_hour_has_a_limit(
    world: World, mailer: Mailer, outbox: Outbox
) -> None:
    fail(world, range(100, 140))
    told(mailer)
    assert outbox.subjects == ["40 messages about your sessions and jobs"]
    assert outbox.mails[0][1].text.endswith("- and 20 more")
    for number in range(200, 220):
        fail(world, [number])
        told(mailer)
    assert len(outbox.mails) == 5
    world.clock.advance(hours=1)
    told(mailer)
    assert outbox.subjects[5:] == ["16 messages about your sessions and jobs"]


def test_a_server_that_is_away_gets_them_later(
    world: World, mailer: Mailer, outbox: Outbox
) -> None:
    outbox.away = True
    make_ready(world, world.launch(ALICE, REQUEST))
    end_by_time(world)
    told(mailer)
    outbox.away = False
    told(mailer)
    assert len(outbox.mails) == 1
    outbox.away = True
    make_ready(world, world.launch(ALICE, REQUEST))
    end_by_time(world)
    told(mailer)
    world.clock.advance(days=1, seconds=10)
    mailer.forget()
    outbox.away = False
    told(mailer)
    assert len(outbox.mails) == 1


def test_the_link_in_a_mail_ends_them_and_no_other_link_does(mailer: Mailer) -> None:
    user, mark = mailer.stop_link("alice").split("/")[-2:]
    for other in ((user, "x"), ("bob", mark), (user, mark[:-1])):
        with pytest.raises(NotFound):
            mailer.stop(*other)
    assert mailer.choice("alice") == set(ALL)
    mailer.stop(user, mark)
    assert mailer.choice("alice") == frozenset()


def test_a_warning_before_the_end_and_another_after_an_extension(
    world: World, mailer: Mailer, outbox: Outbox
) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    poll_slurm(world)
    for _ in range(2):
        deadline = world.clock.now + timedelta(minutes=14)
        world.store.change(session.id, {State.RUNNING}, deadline=deadline)
        for _ in range(2):
            told(mailer)
        world.clock.advance(minutes=5)
    assert [subject.split(" ends ")[0] for subject in outbox.subjects] == [session.name] * 2
