"""Administration: stored values, permissions, and the journal."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.core.admin.audit import WORDS, AuditEvent, AuditFilter, day_bounds, read_cursor
from portal.core.admin.caps import CapsRequest
from portal.core.admin.etag import etag
from portal.core.admin.images import ImageRequest, ImageRule
from portal.core.admin.templates import TemplateRequest
from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.core.session.session import State
from portal.core.site_rules import SiteRules
from portal.core.validation import check
from portal.errors import Conflict, InvalidRequest, NotFound
from portal.services.admin.administration import caller_address
from tests.support.fakes import CATALOG, World, make_world
from tests.unit.web.conftest import make_settings

ADMIN = Person("admin", True, "a")
ALICE = Person("alice", False, "b")
SMALL = {"title": "Small", "resources": {"cpus": 1, "memory": "2g"}}
SECRET = "open-sesame"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(make_settings(tmp_path))
    worker = made.worker
    worker.read_partitions()
    worker.read_limits()
    return made


def save(world: World, name: str, seen: str | None = None, **changes: object) -> str:
    """Save a template and return its ETag."""
    launch_request = check(TemplateRequest, SMALL | changes)
    return etag(world.services.administration.save_template(ADMIN, name, launch_request, seen))


def hide(world: World, seen_by: str = "some", seen: str | None = None, **who: object) -> ImageRule:
    launch_request = check(ImageRequest, {"seen_by": seen_by, **who})
    administration = world.services.administration
    return administration.save_image_rule(ADMIN, CATALOG, "python", "3.13", launch_request, seen)


def cap(world: World, size: str | None, seen: str | None = None) -> SiteRules:
    launch_request = check(CapsRequest, {"max_shared_memory": size})
    return world.services.administration.save_rules(ADMIN, launch_request, seen)


def names(world: World) -> list[str]:
    return [template.name for template in world.services.administration.templates()]


def lines(world: World, **wanted: object) -> list[AuditEvent]:
    """The journal, oldest first."""
    launch_request = AuditFilter.model_validate(wanted)
    found, _ = world.services.administration.events(ADMIN, launch_request, 100, None)
    return found[::-1]


def launch_request(**changes: object) -> dict[str, object]:
    return {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}, **changes}


# Templates


def test_templates_keep_their_order(world: World) -> None:
    for name in ("small", "medium", "large"):
        save(world, name)
    assert names(world) == ["small", "medium", "large"]
    administration = world.services.administration
    administration.move_template(ADMIN, "large", -1)
    assert names(world) == ["small", "large", "medium"]
    administration.move_template(ADMIN, "small", -1)
    administration.move_template(ADMIN, "medium", 1)
    assert names(world) == ["small", "large", "medium"]
    save(world, "large", title="Large")
    assert names(world) == ["small", "large", "medium"]
    administration.drop_template(ADMIN, "small")
    assert names(world) == ["large", "medium"]
    save(world, "first", place=0)
    assert names(world) == ["first", "large", "medium"]
    assert [entry.action for entry in lines(world)] == [
        *["template.make"] * 3,
        "template.order",
        "template.change",
        "template.delete",
        "template.make",
    ]


def test_the_second_of_two_concurrent_edits_is_refused(world: World) -> None:
    seen = save(world, "small")
    save(world, "small", seen, title="Tiny")
    with pytest.raises(Conflict):
        save(world, "small", seen, title="Huge")
    assert world.services.administration.template(ADMIN, "small").title == "Tiny"
    save(world, "small", title="Last")  # an edit without an ETag wins
    first = etag(hide(world, "nobody"))
    hide(world, "some", first, users=("bob",))
    with pytest.raises(Conflict):
        hide(world, "everybody", first)
    none = etag(world.services.administration.site_rules())
    cap(world, "1g", none)
    with pytest.raises(Conflict):
        cap(world, None, none)
    assert world.services.administration.site_rules().max_shared_memory_mb == 1024
    refused = [e for e in lines(world) if e.detail.startswith(("Huge", "everybody", "no cap"))]
    assert refused == []


def test_a_pending_edit_does_not_recreate_a_deleted_template(world: World) -> None:
    seen = save(world, "small")
    world.services.administration.drop_template(ADMIN, "small")
    with pytest.raises(Conflict):
        save(world, "small", seen)
    assert names(world) == []


@pytest.mark.parametrize("name", ["", "two words", "../etc", "x" * 65, "ä", "-x"])
def test_a_template_has_a_name_that_fits_an_address(world: World, name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        save(world, name)
    assert caught.value.errors[0].field == "name"


def test_a_new_template_does_not_replace_another(world: World) -> None:
    save(world, "small")
    with pytest.raises(InvalidRequest) as caught:
        save(world, "small", "")
    assert caught.value.errors[0].field == "name"


def test_a_template_names_an_existing_group(world: World) -> None:
    save(world, "small", resource_group="main")
    with pytest.raises(InvalidRequest) as caught:
        save(world, "big", resource_group="nowhere")
    assert caught.value.errors[0].field == "resource_group"


# Images


def test_a_hidden_image_is_like_one_that_does_not_exist(world: World) -> None:
    running = world.launch(ALICE, parse_launch(launch_request()))
    hide(world, users=("bob",))
    with pytest.raises(InvalidRequest) as hidden:
        world.launch(ALICE, parse_launch(launch_request(version="3.13")))
    with pytest.raises(InvalidRequest) as missing:
        world.launch(ALICE, parse_launch(launch_request(version="9.99")))
    assert hidden.value.text.replace("3.13", "9.99") == missing.value.text
    # The newest one that she may see; her running session keeps its apps.
    assert world.launch(ALICE, parse_launch(launch_request())).version == "3.12"
    world.apps.open_app(ALICE, running.id, "jupyterlab")
    assert world.launch(ADMIN, parse_launch(launch_request())).version == "3.13"
    bob = Person("bob", False, "c")
    assert world.launch(bob, parse_launch(launch_request())).version == "3.13"


def test_a_lost_submission_is_repeated_though_the_image_is_hidden_by_now(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, parse_launch(launch_request()))
    world.slurm.jobs.clear()
    world.slurm.lose_answer = False
    hide(world, "nobody")
    for _ in range(4):
        world.clock.advance(seconds=45)
        world.worker.poll()
    found = world.store.get(session.id)
    assert found is not None
    assert found.state is State.PENDING


def test_there_is_no_rule_for_an_unknown_image(world: World) -> None:
    with pytest.raises(NotFound):
        world.services.administration.save_image_rule(
            ADMIN, CATALOG, "python", "2.7", ImageRequest(seen_by="nobody")
        )


# Caps


def spec(world: World) -> str:
    return world.slurm.jobs[-1].spec


def test_the_cap_applies_to_new_sessions_only_and_is_stored_with_them(world: World) -> None:
    before = world.launch(ALICE, parse_launch(launch_request()))
    assert '"shared_memory": {"mb": 300, "must": false}' in spec(world)
    cap(world, "100m")
    after = world.launch(ALICE, parse_launch(launch_request()))
    assert '"shared_memory": {"mb": 100, "must": true}' in spec(world)
    cap(world, None)
    for session, size in ((before, 300), (after, 100)):
        found = world.store.get(session.id)
        assert found is not None
        assert found.shm_mb == size
        assert found.shared_memory_mb is None  # launched again, it requests the default share
    cap(world, "1g")
    world.launch(ALICE, parse_launch(launch_request()))
    assert '"shared_memory": {"mb": 300, "must": true}' in spec(world)


def test_the_journal_has_the_previous_value(world: World) -> None:
    for title in ("Small", "Tiny", "Tiny"):
        save(world, "small", title=title)
    cap(world, "1g")
    hide(world, users=("bob",))
    assert [entry.detail for entry in lines(world)] == [
        "Small: 1 core, 2 GB",
        "Tiny: 1 core, 2 GB; before: Small: 1 core, 2 GB",
        "Tiny: 1 core, 2 GB",
        "shared memory at most 1 GB; before: no cap on shared memory",
        "users bob; before: everybody",
    ]


# Permissions


def test_others_find_nothing(world: World) -> None:
    story = world.services.administration
    save(world, "small")
    request, rule = check(TemplateRequest, SMALL), ImageRequest(seen_by="nobody")
    for ask in (
        lambda: story.template(ALICE, "small"),
        lambda: story.save_template(ALICE, "mine", request),
        lambda: story.drop_template(ALICE, "small"),
        lambda: story.move_template(ALICE, "small", 1),
        lambda: story.rules_of(ALICE, CATALOG),
        lambda: story.image_rule(ALICE, CATALOG, "python", "3.13"),
        lambda: story.save_image_rule(ALICE, CATALOG, "python", "3.13", rule),
        lambda: story.save_rules(ALICE, CapsRequest()),
        lambda: story.principals(ALICE),
        lambda: story.limits(ALICE),
        lambda: story.events(ALICE, AuditFilter(), 10, None),
    ):
        with pytest.raises(NotFound):
            ask()
    assert names(world) == ["small"]
    assert [entry.action for entry in lines(world)] == ["template.make"]


# The journal


def test_the_journal_records_actions_and_no_secret(world: World) -> None:
    token = caller_address.set("192.0.2.7")
    request = parse_launch(launch_request(name="train", count=2, env={"TOKEN": SECRET}))
    sessions = world.launch_all(ALICE, request, "key")
    world.launch_all(ALICE, request, "key")  # the same request again launches nothing
    world.apps.open_app(ALICE, sessions[0].id, "terminal")
    world.apps.close_app(ALICE, sessions[0].id, "terminal")
    world.sessions.stop(ADMIN, sessions[0].id)
    world.sessions.stop(ADMIN, sessions[0].id)  # it ends once
    world.sessions.stop(ALICE, sessions[1].id)
    caller_address.reset(token)
    found = lines(world)
    assert [(e.who, e.action) for e in found] == [
        ("alice", "session.launch"),
        ("alice", "session.launch"),
        ("alice", "app.open"),
        ("alice", "app.close"),
        ("admin", "session.end"),
        ("alice", "session.end"),
    ]
    assert {e.address for e in found} == {"192.0.2.7"}
    assert {e.time for e in found} == {world.clock()}
    assert [e.target for e in found[:2]] == [s.id for s in sessions]
    assert found[0].detail == (
        "train1: python 3.13, 1 core, 600 MB, shared memory 300 MB, group main, 60 minutes, "
        "variables TOKEN"
    )
    assert found[4].detail == "train1 of alice"
    assert found[5].detail == "train2"
    assert SECRET not in repr(found)


def test_refusals_by_slurm_are_recorded_too(world: World) -> None:
    world.slurm.refuse = "AssocMaxSubmitJobLimit"
    with pytest.raises(InvalidRequest):
        world.launch(ALICE, parse_launch(launch_request()))
    launch, refusal = lines(world)
    assert (launch.action, refusal.action) == ("session.launch", "session.refused")
    assert launch.target == refusal.target


def test_every_action_has_a_text(world: World) -> None:
    test_the_journal_records_actions_and_no_secret(world)
    for name in ("small", "big", "small"):
        save(world, name)
    world.services.administration.move_template(ADMIN, "big", -1)
    world.services.administration.drop_template(ADMIN, "big")
    hide(world, "nobody")
    cap(world, "1g")
    assert len({entry.action for entry in lines(world)}) == 10
    assert {entry.action for entry in lines(world)} <= set(WORDS)


def test_an_unwritable_journal_stops_nothing_and_is_logged(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_entries: Sequence[AuditEvent]) -> None:
        raise OSError("database or disk is full")

    monkeypatch.setattr(world.services.administration._store, "add_events", full)
    session = world.launch(ALICE, parse_launch(launch_request()))
    assert session.state is State.PENDING
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert session.id in record.getMessage()
    assert "session.launch" in record.getMessage()


def test_a_rule_and_its_line_are_stored_together_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_entry: AuditEvent) -> None:
        raise SystemExit("killed")

    save(world, "small")
    with monkeypatch.context() as patch:
        patch.setattr("portal.store.administration.audit_row", crash)
        for act in (
            lambda: save(world, "big"),
            lambda: hide(world, "nobody"),
            lambda: cap(world, "1g"),
            lambda: world.services.administration.drop_template(ADMIN, "small"),
        ):
            with pytest.raises(SystemExit):
                act()
    assert names(world) == ["small"]
    assert world.services.administration.site_rules() == SiteRules()
    assert world.services.administration.visible_catalog(ALICE, CATALOG) == CATALOG
    assert len(lines(world)) == 1


def test_pages_of_the_journal_contain_each_line_once(world: World) -> None:
    story = world.services.administration
    for number in range(7):
        story.record("alice", "login", str(number))
    seen, before = [], None
    while True:
        page, before = story.events(ADMIN, AuditFilter(), 3, before)
        seen += [entry.target for entry in page]
        story.record("bob", "login")  # newer lines do not shift the next page
        if before is None:
            break
    assert seen == list("6543210")


def test_the_journal_is_searched(world: World) -> None:
    story = world.services.administration
    story.record("alice", "session.end", "abc", "Train of bob")
    world.clock.advance(days=1)
    story.record("bob", "login", "", "100% sure")
    story.record("bob", "app.open", "x_y", "")
    assert [e.action for e in lines(world, who="bob")] == ["login", "app.open"]
    assert [e.who for e in lines(world, action="login")] == ["bob"]
    assert [e.who for e in lines(world, text="tRAIN")] == ["alice"]
    assert [e.action for e in lines(world, text="%")] == ["login"]
    assert [e.action for e in lines(world, text="_")] == ["app.open"]
    since, until = day_bounds("2026-11-20")
    assert [e.who for e in lines(world, since=since, until=until)] == ["alice"]
    assert [e.who for e in lines(world, since=until)] == ["bob", "bob"]
    assert lines(world, who="bob", action="session.end") == []


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "9999-12-31", "20"])
def test_an_invalid_day_is_named(day: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        day_bounds(day)
    assert caught.value.errors[0].field == "day"


@pytest.mark.parametrize("cursor", ["", "x", "-1", "0", "9" * 30, str(2**63), "1.5", "²"])
def test_an_invalid_cursor_is_named(cursor: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_cursor(cursor)
    assert caught.value.errors[0].field == "cursor"


def test_old_lines_are_dropped_after_a_year(world: World) -> None:
    story = world.services.administration
    story.record("alice", "login", "old")
    world.clock.advance(days=364)
    story.record("alice", "login", "new")
    story.expire()
    assert len(lines(world)) == 2
    world.clock.advance(days=2)
    story.expire()
    assert [entry.target for entry in lines(world)] == ["new"]
