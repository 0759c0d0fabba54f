"""Job templates: who may use, change and delete them."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.core.auth.person import Person
from portal.core.jobs.compose.drafts import MAX_TEMPLATES, Shared
from portal.core.jobs.compose.submission import parse_job
from portal.errors import Conflict, InvalidRequest, NotFound
from portal.services.jobs.templates import JobTemplates
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings

ALICE, BOB = Person("alice", False, "a"), Person("bob", False, "b")
ADMIN, STRANGER = Person("admin", True, "c"), Person("dave", False, "d")
REQUEST = parse_job({"script": "#!/bin/sh\nid\n", "resources": {"cpus": 2}})


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = make_world(make_settings(tmp_path))
    found.worker.read_limits()
    return found


@pytest.fixture
def templates(world: World) -> JobTemplates:
    return world.services.job_templates


def names(templates: JobTemplates, person: Person) -> list[tuple[str, str]]:
    return [(found.owner, found.name) for found in templates.list(person)]


def test_a_template_is_its_owners_alone_until_it_is_shared(templates: JobTemplates) -> None:
    templates.save(ALICE, "mine", REQUEST)
    assert names(templates, ALICE) == [("alice", "mine")]
    assert names(templates, BOB) == names(templates, ADMIN) == []
    with pytest.raises(NotFound):
        templates.get(BOB, "alice", "mine")
    with pytest.raises(NotFound):
        templates.remove(BOB, "alice", "mine")
    assert templates.get(ALICE, "alice", "mine").body == {
        "script": "#!/bin/sh\nid\n",
        "resources": {"cpus": 2},
    }


def test_lists_have_no_scripts(templates: JobTemplates) -> None:
    templates.save(ALICE, "mine", REQUEST)
    assert templates.list(ALICE)[0].body == {"resources": {"cpus": 2}}


def test_those_of_the_same_account_use_a_shared_one(templates: JobTemplates) -> None:
    saved, _ = templates.save(ALICE, "ours", REQUEST, Shared.ACCOUNT)
    assert saved.account == "research"
    templates.save(BOB, "zebra", REQUEST)
    assert names(templates, BOB) == [("bob", "zebra"), ("alice", "ours")]
    assert names(templates, STRANGER) == []
    with pytest.raises(NotFound):
        templates.remove(BOB, "alice", "ours")
    with pytest.raises(NotFound):
        templates.remove(ADMIN, "alice", "ours")
    with pytest.raises(NotFound):
        templates.rename(BOB, "ours", "other")


def test_only_administrators_share_with_everybody(templates: JobTemplates) -> None:
    with pytest.raises(InvalidRequest, match="shared: only an administrator"):
        templates.save(ALICE, "all", REQUEST, Shared.SITE)
    templates.save(ADMIN, "all", REQUEST, Shared.SITE)
    assert names(templates, STRANGER) == [("admin", "all")]
    with pytest.raises(NotFound):
        templates.remove(ALICE, "admin", "all")
    templates.remove(Person("root2", True, "e"), "admin", "all")
    assert names(templates, STRANGER) == []


def test_one_shares_with_ones_own_accounts_only(templates: JobTemplates) -> None:
    with pytest.raises(InvalidRequest, match="account: choose one of your Slurm accounts"):
        templates.save(ALICE, "x", REQUEST, Shared.ACCOUNT, "other")
    with pytest.raises(InvalidRequest, match="shared: you have no Slurm account"):
        templates.save(STRANGER, "x", REQUEST, Shared.ACCOUNT)
    assert templates.list(ALICE) == []


def test_names_are_checked_and_replaced_only_on_request(templates: JobTemplates) -> None:
    assert templates.save(ALICE, "a", REQUEST)[1] is True
    assert templates.save(ALICE, "a", REQUEST)[1] is False
    with pytest.raises(Conflict, match="You have a job template named a already"):
        templates.save(ALICE, "a", REQUEST, replace=False)
    with pytest.raises(InvalidRequest, match="template: use up to 60"):
        templates.save(ALICE, "a/b", REQUEST)
    templates.save(ALICE, "b", REQUEST)
    with pytest.raises(Conflict, match="named a already"):
        templates.rename(ALICE, "b", "a")
    templates.rename(ALICE, "b", "c")
    assert names(templates, ALICE) == [("alice", "a"), ("alice", "c")]


def test_there_is_a_most(templates: JobTemplates) -> None:
    for number in range(MAX_TEMPLATES):
        templates.save(ALICE, f"t{number}", REQUEST)
    with pytest.raises(InvalidRequest, match="template: you have 100 job templates already"):
        templates.save(ALICE, "one more", REQUEST)
