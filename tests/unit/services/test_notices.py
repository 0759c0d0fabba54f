"""Announcements and maintenance: who may change them, and what launches do meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.admin.etag import etag
from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.core.notices.announcements import MOST, AnnouncementRequest
from portal.core.notices.maintenance import MaintenanceRequest, UnderMaintenance
from portal.core.session.session import Session
from portal.core.session.status import shown_reason
from portal.core.session_job.batch_script import render_script
from portal.core.session_job.description import JobSettings, build_job
from portal.core.validation import check
from portal.errors import Conflict, InvalidRequest, NotFound
from tests.support.fakes import CATALOG, World, make_world
from tests.support.paths import TEMPLATES
from tests.unit.web.conftest import make_settings

ADMIN, ALICE = Person("admin", True, "a"), Person("alice", False, "b")
REQUEST = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})
HOUR = timedelta(hours=1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(make_settings(tmp_path))
    made.worker.read_partitions()
    made.worker.read_limits()
    return made


def text(words: str = "New GPUs", **fields: object) -> AnnouncementRequest:
    return check(AnnouncementRequest, {"text": words, **fields})


def maintain(world: World, until: datetime | None, seen: str | None = None) -> str:
    asked = check(MaintenanceRequest, {"until": until, "message": "New disks"})
    return etag(world.services.notices.begin_maintenance(ADMIN, asked, seen))


def script_of(session: Session, now: datetime) -> str:
    """The batch script as it is submitted at this time, also for the second time."""
    rules = JobSettings("", "/t.sqsh", ".slipway", "https://portal", (0, 0), 10, "storage")
    job = build_job(session, CATALOG.images[0], rules, now)
    return render_script(job, (TEMPLATES / "job" / "session.sh.j2").read_text())


def actions(world: World) -> list[str]:
    found, _ = world.services.administration.events(ADMIN, AuditFilter(), 100, None)
    return [event.action for event in found][::-1]


def test_an_announcement_is_written_changed_and_withdrawn(world: World) -> None:
    notices = world.services.notices
    made = notices.announce(ADMIN, text())
    assert notices.shown(logged_in=True).announcements == [made]
    assert notices.shown(logged_in=False).announcements == []
    changed = notices.change(ADMIN, made.id, text("Newer GPUs"), etag(made))
    assert notices.announcement(ALICE, made.id) == changed
    with pytest.raises(Conflict):
        notices.change(ADMIN, made.id, text("Lost"), etag(made))
    with pytest.raises(Conflict):
        notices.withdraw(ADMIN, made.id, etag(made))
    notices.withdraw(ADMIN, made.id, etag(changed))
    assert notices.readable(ADMIN) == []
    for gone in (notices.withdraw, lambda person, id: notices.change(person, id, text())):
        with pytest.raises(NotFound):
            gone(ADMIN, made.id)
    names = ["announcement.make", "announcement.change", "announcement.delete"]
    assert actions(world) == names


def test_others_change_nothing(world: World) -> None:
    notices = world.services.notices
    made = notices.announce(ADMIN, text())
    request = check(MaintenanceRequest, {"message": "x"})
    for refused in (
        lambda: notices.announce(ALICE, text()),
        lambda: notices.change(ALICE, made.id, text("x")),
        lambda: notices.withdraw(ALICE, made.id),
        lambda: notices.begin_maintenance(ALICE, request),
        lambda: notices.end_maintenance(ALICE),
    ):
        with pytest.raises(NotFound):
            refused()
    assert notices.readable(ALICE) == [made]
    assert notices.maintenance() is None


def test_what_is_planned_is_for_administrators(world: World) -> None:
    notices = world.services.notices
    planned = notices.announce(ADMIN, text(starts=world.clock() + HOUR))
    assert notices.readable(ADMIN) == [planned]
    assert notices.readable(ALICE) == []
    with pytest.raises(NotFound):
        notices.announcement(ALICE, planned.id)
    world.clock.advance(hours=1)
    assert notices.readable(ALICE) == [planned]


def test_there_are_not_too_many(world: World) -> None:
    for number in range(MOST):
        world.services.notices.announce(ADMIN, text(f"No. {number}"))
    with pytest.raises(InvalidRequest, match="delete those"):
        world.services.notices.announce(ADMIN, text())


def test_a_launch_during_maintenance_waits_for_its_end(world: World) -> None:
    maintain(world, world.clock() + HOUR)
    session = world.launch(ALICE, REQUEST)
    assert session.begin == world.clock() + HOUR
    assert "#SBATCH --begin=now+3600\n" in script_of(session, world.clock())
    assert "--begin" not in script_of(session, world.clock() + HOUR)
    world.slurm.jobs[-1].reason = "BeginTime"
    world.worker.poll()
    stored = world.store.get(session.id)
    assert stored is not None
    reason = shown_reason(stored, world.status.slurm_status(), world.clock())
    assert reason is not None
    assert reason.text == "Maintenance until 13:00 UTC; it starts then."


def test_without_a_known_end_nothing_is_launched(world: World) -> None:
    maintain(world, None)
    with pytest.raises(UnderMaintenance, match="New disks"):
        world.launch(ALICE, REQUEST, key="k")
    assert world.store.live() == []
    assert world.slurm.jobs == []
    estimate = world.estimate(ALICE, REQUEST)
    assert estimate is not None
    assert "New disks" in estimate.reason
    assert world.launch(ADMIN, REQUEST).begin is None
    world.services.notices.end_maintenance(ADMIN)
    assert world.launch(ALICE, REQUEST, key="k").begin is None


def test_a_repeated_launch_is_answered_during_maintenance(world: World) -> None:
    first = world.launch(ALICE, REQUEST, key="k")
    maintain(world, None)
    assert world.launch(ALICE, REQUEST, key="k").id == first.id


def test_waiting_sessions_follow_a_changed_end(world: World) -> None:
    maintain(world, world.clock() + HOUR)
    session = world.launch(ALICE, REQUEST)
    world.worker.poll()
    world.worker.follow_maintenance()
    assert world.slurm.jobs[-1].begin is None
    maintain(world, world.clock() + 2 * HOUR)
    world.worker.follow_maintenance()
    assert world.slurm.jobs[-1].begin == 7200
    world.services.notices.end_maintenance(ADMIN)
    world.worker.follow_maintenance()
    assert world.slurm.jobs[-1].begin == 0
    stored = world.store.get(session.id)
    assert stored is not None
    assert stored.begin == world.clock()
    world.slurm.jobs[-1].begin = None
    world.worker.follow_maintenance()
    assert world.slurm.jobs[-1].begin is None


def test_running_sessions_are_left_alone(world: World) -> None:
    maintain(world, world.clock() + HOUR)
    world.launch(ADMIN, REQUEST)
    waiting = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[-1])
    world.worker.poll()
    maintain(world, world.clock() + 2 * HOUR)
    world.worker.follow_maintenance()
    assert [job.begin for job in world.slurm.jobs] == [None, None]
    assert waiting.begin is not None


def test_maintenance_is_over_at_its_end(world: World) -> None:
    seen = maintain(world, world.clock() + HOUR)
    assert world.services.notices.maintenance() is not None
    with pytest.raises(Conflict):
        maintain(world, world.clock() + 2 * HOUR, "")
    maintain(world, world.clock() + 2 * HOUR, seen)
    world.clock.advance(hours=2)
    assert world.services.notices.maintenance() is None
    with pytest.raises(Conflict):
        world.services.notices.end_maintenance(ADMIN)
    maintain(world, world.clock() + HOUR, "")
    with pytest.raises(InvalidRequest):
        maintain(world, world.clock())
    assert [name for name in actions(world) if name.startswith("maint")] == [
        "maintenance.on",
        "maintenance.change",
        "maintenance.on",
    ]
