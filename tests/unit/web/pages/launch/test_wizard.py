"""The wizard: its steps, the confirmation about folders, the review, and relaunching."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from werkzeug.datastructures import MultiDict
from werkzeug.test import TestResponse

from portal.core.auth.person import Person
from portal.core.cluster.job_reports import Estimate
from portal.core.launch.mounts import Folder
from portal.core.launch.names import is_generated
from portal.errors import FieldError, InvalidRequest, Unavailable
from tests.support.fakes import World
from tests.support.launch_pages import (
    HTMX,
    HUGE_TEMPLATE,
    SMALL_TEMPLATE,
    WIZARD_FORM,
    field_value,
    read_slurm,
    ticked_values,
)
from tests.unit.web.conftest import PORTAL, Browser, Runner

Launched = Callable[..., Runner]


def send(browser: Browser, path: str, fields: list[tuple[str, str]]) -> TestResponse:
    """Submit a form whose fields may occur several times."""
    data = MultiDict(fields)
    data["csrf_token"] = browser.csrf()
    return browser.client.post(path, data=data, base_url=PORTAL)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Alice's storage folders; without the last one the login node does not respond."""
    names = ["data", "results"]

    def found(_self: object, person: Person) -> list[Folder]:
        if not names:
            raise Unavailable("The login node does not answer.")
        odd = Folder("odd\nname", "/home/alice/storage/odd\nname", "use no line breaks")
        return [Folder("home", f"/home/{person.name}"), *(Folder(n, f"/s/{n}") for n in names), odd]

    def make(_self: object, _person: Person, name: str) -> Folder:
        if name in names:
            raise InvalidRequest([FieldError("folder", "you have a folder of this name already")])
        names.append(name)
        return Folder(name, f"/s/{name}")

    monkeypatch.setattr("portal.services.storage.Storage.list", found)
    monkeypatch.setattr("portal.services.storage.Storage.make", make, raising=False)
    return names


@pytest.fixture
def templates(world: World) -> None:
    """Two templates, one of which is too large for everybody."""
    world.store_templates(SMALL_TEMPLATE, HUGE_TEMPLATE)


# Steps


def test_the_page_has_four_steps_and_launching_is_on_all_of_them(alice: Browser) -> None:
    page = alice.get("/sessions/new").text
    steps = re.findall(r'<section class="step" id="step-(\w+)"', page)
    assert steps == ["environment", "folders", "resources", "review"]
    outside = page[page.rindex("</section>") :]
    assert "Confirm and launch" in outside
    assert ticked_values(page, "image") == ["python/3.13"]


def test_the_first_page_alone_launches_with_defaults(world: World, alice: Browser) -> None:
    page = alice.get("/sessions/new").text
    fields = {
        name: field_value(page, name) for name in ("resources.cpus", "resources.memory", "count")
    }
    answer = alice.post("/sessions", fields | {"image": "python/3.13", "confirmed": "yes"})
    made = world.store.live()[0]
    assert answer.headers["Location"] == f"/sessions?new={made.id}"
    assert (made.version, made.cpus, made.memory_mb, made.mounts) == ("3.13", 1, 1024, ())


def test_the_selected_version_is_what_runs(world: World, alice: Browser) -> None:
    answer = alice.post("/sessions", WIZARD_FORM, headers=HTMX)
    made = world.store.live()[0]
    assert answer.headers["HX-Redirect"] == f"/sessions?new={made.id}"
    assert (made.environment, made.version) == ("python", "3.12")


def test_several_sessions_are_all_named_in_the_url(world: World, alice: Browser) -> None:
    answer = alice.post("/sessions", WIZARD_FORM | {"count": "3"})
    ids = answer.headers["Location"].removeprefix("/sessions?new=").split(",")
    assert sorted(ids) == sorted(session.id for session in world.store.live())
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"name": "a b"}, "environment"),
        ({"image": "cobol/1"}, "environment"),
        ({"mount": "gone/.."}, "folders"),
        ({"count": "99"}, "resources"),
        ({"count": "99", "name": "a b"}, "environment"),
        ({"template": "none"}, "resources"),
    ],
)
def test_the_first_wrong_step_is_open(
    world: World, alice: Browser, fields: dict[str, str], step: str
) -> None:
    answer = alice.post("/sessions", WIZARD_FORM | fields)
    assert answer.status_code == 422
    assert f'data-first="{step}"' in answer.text
    wrong = re.findall(r'<li class="wrong"><a href="#step-(\w+)"', answer.text)
    assert wrong[0] == step
    assert len(wrong) == len({"name": 1, "image": 1}.keys() & fields) + bool(
        {"count", "mount", "template"} & fields.keys()
    )
    assert world.store.live() == []


# Folders


def test_folders_reach_the_session(world: World, alice: Browser, folders: list[str]) -> None:
    for name in ("data", "results"):
        (world.slurm.root / "home/alice/storage" / name).mkdir(parents=True)
    chosen = [("mount", "data"), ("mount", "home"), ("read_only", "home"), ("read_only", "results")]
    answer = send(alice, "/sessions", [*WIZARD_FORM.items(), *chosen])
    assert answer.status_code == 303, answer.text
    made = world.store.live()[0].mounts
    assert [(m.folder, m.read_only) for m in made] == [("data", False), ("home", True)]


def test_the_list_keeps_selections_and_reports_missing_folders(
    alice: Browser, folders: list[str]
) -> None:
    path = "/sessions/new/folders?mount=data&read_only=data&mount=lost"
    text = alice.get(path, headers=HTMX).text
    assert ticked_values(text, "mount") == ["data"]
    assert ticked_values(text, "read_only") == ["data"]
    assert "appears as <code><bdi>~/results</bdi></code>" in text
    assert "no longer exists" in text
    assert "cannot be mounted" in text
    assert "hx-trigger" not in text


def test_a_silent_login_node_is_reported_and_nothing_is_lost(
    alice: Browser, folders: list[str]
) -> None:
    folders.clear()
    text = alice.get("/sessions/new/folders?mount=data", headers=HTMX).text
    assert "cannot be listed right now" in text
    assert ticked_values(text, "mount") == ["data"]
    assert "Try again" in text


def test_a_folder_is_created_and_selected(alice: Browser, folders: list[str]) -> None:
    text = alice.post(
        "/folders", WIZARD_FORM | {"folder": "fresh", "mount": "data"}, headers=HTMX
    ).text
    assert ticked_values(text, "mount") == ["data", "fresh"]
    again = alice.post("/folders", WIZARD_FORM | {"folder": "fresh"}, headers=HTMX)
    assert "You have a folder of this name already" in again.text
    assert field_value(again.text, "folder") == "fresh"
    page = alice.post("/folders", WIZARD_FORM | {"folder": "without-a-script"})
    assert 'data-first="folders"' in page.text
    assert ticked_values(page.text, "mount") == ["without-a-script"]
    assert ticked_values(page.text, "image") == ["python/3.12"]


def test_without_a_folder_it_asks_for_confirmation(
    world: World, alice: Browser, folders: list[str]
) -> None:
    fields = {name: text for name, text in WIZARD_FORM.items() if name != "confirmed"}
    question = alice.post("/sessions", fields | {"env": '{"A": "<b>"}'})
    assert "No folder is mounted" in question.text
    assert world.store.live() == []
    assert json.loads(field_value(question.text, "env")) == {"A": "<b>"}
    back = alice.post("/sessions/new", fields)
    assert 'data-first="folders"' in back.text
    assert "appears as <code><bdi>~/data</bdi></code>" in back.text
    assert alice.post("/sessions", fields | {"confirmed": "yes"}).status_code == 303
    assert alice.post("/sessions", fields | {"mount": "home"}).status_code == 303
    assert len(world.store.live()) == 2


def test_errors_come_before_the_confirmation(alice: Browser) -> None:
    answer = alice.post("/sessions", {"image": "python/3.12", "resources.memory": "much"})
    assert answer.status_code == 422


# Resources


@pytest.mark.usefixtures("templates")
def test_a_template_supplies_its_resources(world: World, alice: Browser) -> None:
    read_slurm(world)
    page = alice.get("/sessions/new").text
    assert "Not available to you: 64 is too many: you may use 3 cores at once" in page
    fields = WIZARD_FORM | {"template": "small", "resources.cpus": "99", "resources.memory": "junk"}
    assert alice.post("/sessions", fields).status_code == 303
    made = world.store.live()[0]
    assert (made.cpus, made.memory_mb, made.time_limit) == (2, 1024, 30)


def test_a_single_group_is_fixed_and_shows_its_free_resources(world: World, alice: Browser) -> None:
    read_slurm(world)
    page = alice.get("/sessions/new").text
    assert 'name="resource_group"' not in page
    assert "<strong>main</strong>" in page
    assert "free now: 3 cores, 3 GB" in page


# Review


def test_the_review_shows_what_will_be_submitted(world: World, alice: Browser) -> None:
    read_slurm(world)
    more = {"env": '{"TOKEN": "secret-value"}', "mount": "home", "read_only": "home", "count": "2"}
    text = alice.post(
        "/sessions/new/review", WIZARD_FORM | more | {"name": "many"}, headers=HTMX
    ).text
    for words in ("Python 3.12", "many1 … many2", "~/home", "read-only", "600 MB", "300 MB"):
        assert words in text
    for words in ("TOKEN", "1 h", "until about", "Free for you in main right now: 3 cores"):
        assert words in text
    assert "secret-value" not in text
    assert world.store.live() == []
    assert world.slurm.jobs == []


def test_the_review_links_to_errors(world: World, alice: Browser) -> None:
    read_slurm(world)
    wrong = WIZARD_FORM | {"resources.cpus": "99"}
    text = alice.post("/sessions/new/review", wrong, headers=HTMX).text
    assert "<strong>CPU cores:</strong> <span>99 is too many: you may use 3 cores at once" in text
    assert 'data-go="resources" data-field="resources-cpus"' in text
    page = alice.post("/sessions/new/review", wrong).text  # without a script
    assert 'data-first="review"' in page or 'data-first="resources"' in page
    assert "You may use 3 cores at once" in page


def test_the_estimate_is_labelled_and_never_blocks(
    world: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(answer: Estimate | Exception | None) -> str:
        def estimate(*_: object) -> Estimate | None:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("portal.services.launch.estimates.Estimates.estimate", estimate)
        return alice.post("/sessions/new/estimate", WIZARD_FORM, headers=HTMX).text

    assert "right away" in say(Estimate(world.clock(), "n1", ""))
    assert "Slurm expects it to start at" in say(
        Estimate(world.clock() + timedelta(hours=1), "n1", "")
    )
    assert "all is taken" in say(Estimate(None, "", "all is taken"))
    assert "There is no estimate" in say(None)
    assert "There is no estimate" in say(Unavailable("silent"))
    assert "There is no estimate" in say(InvalidRequest([FieldError("name", "is bad")]))


# Relaunch


def test_a_session_is_relaunched_once_per_page(
    world: World, alice: Browser, launched: Launched
) -> None:
    first = launched("alice", env={"A": "b c"}, time_limit=30, mounts=["home"]).session
    for _ in range(2):  # a double click
        answer = alice.post(f"/sessions/{first.id}/relaunch", {"key": "k"})
        assert answer.status_code == 303
    made = [session for session in world.store.live() if session.id != first.id]
    assert len(made) == 1
    assert answer.headers["Location"] == f"/sessions?new={made[0].id}"
    assert is_generated(made[0].name)
    assert made[0].name != first.name, "a generated name is not reused"
    same = ("environment", "version", "cpus", "memory_mb", "time_limit", "mounts")
    assert [getattr(made[0], n) for n in same] == [getattr(first, n) for n in same]
    assert world.store.env(made[0].id) == {"A": "b c"}
    other = launched("alice").session
    assert alice.post(f"/sessions/{other.id}/relaunch", {"key": "k"}).status_code == 303


def test_the_wizard_is_filled_with_a_session(
    world: World, alice: Browser, launched: Launched
) -> None:
    mounts = [{"folder": "home", "read_only": True}]
    session = launched(
        "alice", version="3.12", name="mine", env={"A": "<b>"}, time_limit=30, mounts=mounts
    ).session
    page = alice.get(f"/sessions/new?from={session.id}").text
    assert ticked_values(page, "image") == ["python/3.12"]
    assert ticked_values(page, "mount") == ["home"]
    assert ticked_values(page, "read_only") == ["home"]
    assert json.loads(field_value(page, "env")) == {"A": "<b>"}
    assert [field_value(page, n) for n in ("name", "time_limit", "resources.memory")] == [
        "mine",
        "30 min",
        "600 MB",
    ]


def test_missing_items_are_named_and_the_rest_is_filled_in(
    world: World, alice: Browser, launched: Launched
) -> None:
    read_slurm(world)
    session = launched("alice", time_limit=30).session
    world.force(session.id, version="2.7", partition="old")
    for answer in (
        alice.get(f"/sessions/new?from={session.id}"),
        alice.post(f"/sessions/{session.id}/relaunch"),
    ):
        assert "Python has no version 2.7" in answer.text
        assert "Choose one of: main" in answer.text
        assert field_value(answer.text, "time_limit") == "30 min"
    assert len(world.store.live()) == 1


def test_only_the_owner_gets_the_values(
    world: World, app: object, launched: Launched, bob: Browser
) -> None:
    session = launched("alice", env={"A": "secret"}).session
    admin = Browser(bob.client.application).log_in("admin")
    for browser in (bob, admin):
        assert browser.get(f"/sessions/new?from={session.id}").status_code == 404
        assert browser.post(f"/sessions/{session.id}/relaunch").status_code == 404
    assert len(world.store.live()) == 1


def test_the_time_limit_is_filled_with_the_groups_own(world: World, alice: Browser) -> None:
    read_slurm(world)
    page = alice.get("/sessions/new").text
    assert [field_value(page, name) for name in ("time_limit", "time_proposed")] == ["1 h", "1 h"]
    assert 'up to <span data-bound="time">8 h</span>' in page
    proposed = WIZARD_FORM | {"time_limit": "1 h", "time_proposed": "1 h", "confirmed": "yes"}
    assert alice.post("/sessions", proposed).status_code == 303
    (made,) = world.store.live()
    assert made.time_limit == 60, "Slurm is told what was shown"


@pytest.mark.parametrize(("text", "minutes"), [("90", 90), ("1:30", 90), ("8h", 480)])
def test_the_time_limit_is_written_in_several_ways(
    world: World, alice: Browser, text: str, minutes: int
) -> None:
    asked = WIZARD_FORM | {"time_limit": text, "time_proposed": "1 h", "confirmed": "yes"}
    assert alice.post("/sessions", asked).status_code == 303
    assert world.store.live()[0].time_limit == minutes


@pytest.mark.usefixtures("templates")
def test_a_template_has_its_own_time(world: World, alice: Browser) -> None:
    read_slurm(world)
    form = {key: text for key, text in WIZARD_FORM.items() if not key.startswith("resources.")}
    chosen = form | {"template": "small", "time_limit": "1 h", "time_proposed": "1 h"}
    assert alice.post("/sessions", chosen | {"confirmed": "yes"}).status_code == 303
    assert world.store.live()[0].time_limit == 30


def test_a_time_over_the_limit_names_both(world: World, alice: Browser) -> None:
    read_slurm(world)
    text = alice.post("/sessions", WIZARD_FORM | {"time_limit": "9 h", "confirmed": "yes"}).text
    assert "Sessions here may run 8 h at most" in text


def test_the_folders_of_the_last_session_are_proposed(
    world: World, alice: Browser, bob: Browser, launched: Launched
) -> None:
    assert ticked_values(alice.get("/sessions/new").text, "mount") == []
    launched("alice", mounts=[{"folder": "home", "read_only": True}])
    page = alice.get("/sessions/new").text
    assert (ticked_values(page, "mount"), ticked_values(page, "read_only")) == (["home"], ["home"])
    assert "as in your last session" in page
    listed = alice.get("/sessions/new/folders?mount=home&proposed=yes").text
    assert "as in your last session" in listed
    assert "as in your last session" not in alice.get("/sessions/new/folders?mount=home").text
    assert ticked_values(bob.get("/sessions/new").text, "mount") == []
    world.clock.advance(seconds=1)
    launched("alice")
    assert ticked_values(alice.get("/sessions/new").text, "mount") == []
