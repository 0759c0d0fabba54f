"""Concurrent changes of the same object: one wins, the other is refused, and nothing is lost.

Threads race for real, on a database file, as gunicorn's processes do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.admin.caps import CapsRequest
from portal.core.admin.etag import etag
from portal.core.admin.images import ImageRequest, ImageRule
from portal.core.admin.templates import TemplateRequest
from portal.core.auth.person import Person
from portal.core.launch.presets import MAX_PRESETS
from portal.core.launch.request import parse_launch
from portal.core.validation import check
from portal.errors import PortalError
from tests.support.fakes import CATALOG, World, make_world
from tests.unit.web.conftest import make_settings

ADMIN = Person("admin", True, "a")
ALICE = Person("alice", False, "b")
SMALL = {"title": "Small", "resources": {"cpus": 1, "memory": "2g"}}
REQUEST = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})
THREADS = 8
ROUNDS = 5

Result = TypeVar("Result")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(make_settings(tmp_path))


def at_once(tasks: Sequence[Callable[[], Result]]) -> list[Result | PortalError]:
    """Start all at the same moment; each one's result, or the error that it raised."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], Result]) -> Result | PortalError:
        barrier.wait()
        try:
            return task()
        except PortalError as error:
            return error

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def won(results: Sequence[object]) -> int:
    return sum(not isinstance(result, PortalError) for result in results)


def noted(world: World, action: str) -> int:
    """The number of journal lines with this action."""
    wanted = AuditFilter(action=action)
    lines, _ = world.services.administration.events(ADMIN, wanted, 500, None)
    return len(lines)


def save(world: World, name: str, seen: str | None = None, **changes: object) -> str:
    asked = check(TemplateRequest, SMALL | changes)
    return etag(world.services.administration.save_template(ADMIN, name, asked, seen))


def test_one_of_concurrent_edits_of_a_template_wins(world: World) -> None:
    for number in range(ROUNDS):
        seen = save(world, "small")
        changed = [
            partial(save, world, "small", seen, title=f"T{number}-{n}") for n in range(THREADS)
        ]
        assert won(at_once(changed)) == 1
    assert noted(world, "template.change") == ROUNDS + ROUNDS - 1


def test_a_new_template_is_created_once(world: World) -> None:
    for number in range(ROUNDS):
        makes = [partial(save, world, f"t{number}", "")] * THREADS
        assert won(at_once(makes)) == 1
    assert noted(world, "template.make") == ROUNDS


def test_new_templates_have_distinct_positions(world: World) -> None:
    names = [f"t{number}" for number in range(THREADS)]
    results = at_once([partial(save, world, name) for name in names])
    assert won(results) == THREADS
    places = [template.place for template in world.services.administration.templates()]
    assert places == list(range(THREADS))


def test_no_move_is_lost(world: World) -> None:
    names = [f"t{number}" for number in range(10)]
    for name in names:
        save(world, name)
    administration = world.services.administration
    moves = [partial(administration.move_template, ADMIN, "t0", 1)] * THREADS
    assert won(at_once(moves)) == THREADS
    found = [template.name for template in administration.templates()]
    assert found == [*names[1 : THREADS + 1], "t0", *names[THREADS + 1 :]]
    assert noted(world, "template.order") == THREADS


def test_deleting_a_changed_template_is_refused_or_first(world: World) -> None:
    administration = world.services.administration
    for _ in range(ROUNDS):
        seen = save(world, "small")
        tasks: list[Callable[[], object]] = [
            partial(save, world, "small", seen, title="Changed"),
            partial(administration.drop_template, ADMIN, "small", seen),
        ]
        assert won(at_once(tasks)) == 1
        for template in administration.templates():
            administration.drop_template(ADMIN, template.name)


def test_one_of_concurrent_edits_of_the_caps_wins(world: World) -> None:
    administration = world.services.administration
    for number in range(ROUNDS):
        seen = etag(administration.site_rules())
        asked = [
            check(CapsRequest, {"max_shared_memory": f"{1 + number * THREADS + n}g"})
            for n in range(THREADS)
        ]
        changes = [partial(administration.save_rules, ADMIN, one, seen) for one in asked]
        assert won(at_once(changes)) == 1
    assert noted(world, "caps.change") == ROUNDS


def test_the_journal_has_each_change_of_the_caps_in_order(world: World) -> None:
    administration = world.services.administration
    asked = [check(CapsRequest, {"max_shared_memory": f"{n + 1}g"}) for n in range(THREADS)]
    at_once([partial(administration.save_rules, ADMIN, one) for one in asked])
    lines, _ = administration.events(ADMIN, AuditFilter(action="caps.change"), 500, None)
    details = [line.detail.split("; before: ") for line in reversed(lines)]
    assert len(details) == THREADS
    assert [before for _, before in details[1:]] == [now for now, _ in details[:-1]]


def test_one_of_concurrent_edits_of_a_rule_wins(world: World) -> None:
    administration = world.services.administration
    environment, version = "python", "3.13"

    def show(seen: str, users: tuple[str, ...]) -> ImageRule:
        asked = ImageRequest(seen_by="some", users=users)
        return administration.save_image_rule(ADMIN, CATALOG, environment, version, asked, seen)

    for number in range(ROUNDS):
        seen = etag(administration.image_rule(ADMIN, CATALOG, environment, version)[1])
        changes = [partial(show, seen, (f"user{number}-{n}",)) for n in range(THREADS)]
        assert won(at_once(changes)) == 1
    assert noted(world, "image.show") == ROUNDS


def test_nobody_exceeds_the_limit_of_presets(world: World) -> None:
    presets = world.services.presets
    for number in range(MAX_PRESETS - 3):
        presets.save(ALICE, f"p{number}", REQUEST)
    saves = [partial(presets.save, ALICE, f"new{n}", REQUEST) for n in range(THREADS)]
    assert won(at_once(saves)) == 3
    assert len(presets.list(ALICE)) == MAX_PRESETS


def test_a_preset_is_saved_once_per_name_unless_it_is_replaced(world: World) -> None:
    presets = world.services.presets
    once = [partial(presets.save, ALICE, "one", REQUEST, replace=False)] * THREADS
    assert won(at_once(once)) == 1
    again = [partial(presets.save, ALICE, "two", REQUEST, replace=True)] * THREADS
    assert won(at_once(again)) == THREADS
    assert [preset.name for preset in presets.list(ALICE)] == ["one", "two"]


def test_a_preset_is_renamed_once(world: World) -> None:
    presets = world.services.presets
    presets.save(ALICE, "old", REQUEST)
    renames = [partial(presets.rename, ALICE, "old", f"new{n}") for n in range(THREADS)]
    assert won(at_once(renames)) == 1
    assert len(presets.list(ALICE)) == 1


def test_a_name_is_given_to_one_preset(world: World) -> None:
    presets = world.services.presets
    for number in range(THREADS):
        presets.save(ALICE, f"old{number}", REQUEST)
    renames = [partial(presets.rename, ALICE, f"old{n}", "new") for n in range(THREADS)]
    assert won(at_once(renames)) == 1
    assert len(presets.list(ALICE)) == THREADS


def test_sessions_ended_concurrently_end_once(world: World) -> None:
    for number in range(THREADS):
        assert world.launch(ALICE, REQUEST, f"key{number}")
    made = [session.id for session in world.store.live()]
    assert won(at_once([partial(world.sessions.stop_all, ALICE, made)] * THREADS)) == THREADS
    lines, _ = world.services.administration.events(
        ADMIN, AuditFilter(action="session.end"), 500, None
    )
    assert Counter(line.target for line in lines) == dict.fromkeys(made, 1)
