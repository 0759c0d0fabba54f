"""Job templates on pages."""

from __future__ import annotations

from tests.support.composer_pages import FORM, SCRIPT, field_error, input_value, script_text
from tests.support.fakes import World
from tests.unit.web.conftest import Browser


def test_a_template_is_saved_used_renamed_and_deleted(alice: Browser, world: World) -> None:
    saved = alice.post("/jobs/templates", FORM | {"template": "mine", "array": "0-3"})
    assert saved.status_code == 200
    assert "Saved as mine." in saved.text
    assert (input_value(saved.text, "key"), script_text(saved.text)) == ("k", SCRIPT)
    page = alice.get("/jobs/new?template=mine").text
    assert (script_text(page), input_value(page, "array")) == (SCRIPT, "0-3")
    taken = alice.post("/jobs/templates", FORM | {"template": "mine"})
    assert taken.status_code == 409
    assert "You have a job template named mine already." in taken.text
    again = alice.post("/jobs/templates", FORM | {"template": "mine", "replace": "yes"})
    assert again.status_code == 200
    assert alice.post("/jobs/templates/mine/rename", {"to": "ours"}).status_code == 303
    assert "ours" in alice.get("/jobs/templates").text
    assert alice.post("/jobs/templates/alice/ours/delete").status_code == 303
    assert "There are no job templates yet" in alice.get("/jobs/templates").text
    assert world.slurm.submitted == []


def test_others_use_it_once_it_is_shared(alice: Browser, bob: Browser, world: World) -> None:
    world.worker.read_limits()
    alice.post("/jobs/templates", FORM | {"template": "mine"})
    assert bob.get("/jobs/new?template=mine&owner=alice").status_code == 404
    assert "mine" not in bob.get("/jobs/templates").text
    shared = {"template": "mine", "shared": "account:research", "replace": "yes"}
    assert alice.post("/jobs/templates", FORM | shared).status_code == 200
    assert script_text(bob.get("/jobs/new?template=mine&owner=alice").text) == SCRIPT
    assert "shared with research" in bob.get("/jobs/templates").text
    assert bob.post("/jobs/templates/alice/mine/delete").status_code == 404
    assert bob.post("/jobs/templates/mine/rename", {"to": "x"}).status_code == 404


def test_what_cannot_be_saved_is_told_beside_the_field(alice: Browser) -> None:
    for changes, message in (
        ({"template": ""}, "Use up to 60 letters"),
        ({"template": "mine", "shared": "site"}, "Only an administrator can share"),
        ({"template": "mine", "shared": "friends"}, "Choose with whom to share"),
        ({"template": "mine", "script": "echo"}, "This cannot be saved yet"),
    ):
        answer = alice.post("/jobs/templates", FORM | changes)
        assert answer.status_code == 422
        assert field_error(answer.text, "template").startswith(message)
    renamed = alice.post("/jobs/templates/none/rename", {"to": "-"})
    assert renamed.status_code == 422
    assert "Use up to 60 letters" in renamed.text
    assert "There are no job templates yet" in renamed.text
