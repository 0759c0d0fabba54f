"""/api/v1/job-templates."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.fakes import World
from tests.unit.web.conftest import Api

SCRIPT = "#!/bin/sh\nhostname\n"
Client = Callable[[str], Api]


def test_a_template_is_saved_read_and_deleted(api: Client, world: World) -> None:
    body = {"script": SCRIPT, "resources": {"memory": "2g"}}
    made = api("alice")("PUT", "/job-templates/mine", json=body)
    assert made.status_code == 201
    assert made.json == {
        "owner": "alice",
        "name": "mine",
        "saved": "2026-11-20T12:00:00+00:00",
        "shared": "nobody",
        "account": "",
        "job": body,
    }
    assert api("alice")("PUT", "/job-templates/mine", json=body).status_code == 200
    listed = api("alice")("GET", "/job-templates").json
    assert listed is not None
    assert [(t["name"], t["job"]) for t in listed["templates"]] == [
        ("mine", {"resources": {"memory": "2g"}})
    ]
    assert api("alice")("GET", "/job-templates/mine").json == made.json
    assert api("alice")("DELETE", "/job-templates/mine").status_code == 204
    assert api("alice")("DELETE", "/job-templates/mine").status_code == 404
    assert world.slurm.submitted == []


def test_anothers_template_is_missing_unless_it_is_shared(api: Client, world: World) -> None:
    world.worker.read_limits()
    api("alice")("PUT", "/job-templates/mine", json={"script": SCRIPT})
    missing = api("bob")("GET", "/job-templates/none?owner=alice")
    hidden = api("bob")("GET", "/job-templates/mine?owner=alice")
    assert (missing.status_code, missing.json) == (hidden.status_code, hidden.json)
    assert hidden.status_code == 404
    shared = {"script": SCRIPT, "shared": "account"}
    assert api("alice")("PUT", "/job-templates/mine", json=shared).status_code == 200
    found = api("bob")("GET", "/job-templates/mine?owner=alice").json
    assert found is not None
    assert (found["account"], found["job"]["script"]) == ("research", SCRIPT)
    assert api("bob")("DELETE", "/job-templates/mine?owner=alice").status_code == 404


def test_bad_input_names_its_field_and_saves_nothing(api: Client) -> None:
    for body, field in (
        ({"script": "echo"}, "script"),
        ({"script": SCRIPT, "shared": "friends"}, "shared"),
        ({"script": SCRIPT, "shared": "site"}, "shared"),
        ({"script": SCRIPT, "shared": "account"}, "shared"),
        ({"script": SCRIPT, "account": 5}, "account"),
    ):
        answer = api("alice")("PUT", "/job-templates/mine", json=body)
        assert answer.status_code == 422
        assert answer.json is not None
        assert [error["field"] for error in answer.json["errors"]] == [field]
    assert api("alice")("PUT", "/job-templates/-a", json={"script": SCRIPT}).status_code == 422
    listed = api("alice")("GET", "/job-templates").json
    assert listed == {"templates": []}
