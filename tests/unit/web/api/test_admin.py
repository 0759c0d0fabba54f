"""The administrators' part of the REST API, and the effect of their rules on everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, PORTAL, Api

MakeApi = Callable[[str], Api]
SMALL: dict[str, Any] = {"title": "Small", "resources": {"cpus": 1, "memory": "2g"}}
IMAGE = "/admin/images/python/3.13"

NO_CAPS = {
    "max_shared_memory": None,
    "idle_minutes": None,
    "idle_warning": None,
    "idle_cpu_percent": 10,
    "public_apps": True,
    "preferred_ports": True,
}


def fields(answer: Any) -> list[str]:
    """The fields named in a refusal."""
    assert answer.status_code == 422, answer.text
    return [error["field"] for error in answer.json["errors"]]


def test_templates(api: MakeApi) -> None:
    admin = api("admin")
    assert admin("GET", "/admin/templates/small").status_code == 404
    made = admin("PUT", "/admin/templates/small", json=SMALL)
    assert made.status_code == 200
    assert made.json == {
        "name": "small",
        "title": "Small",
        "description": "",
        "resources": {
            "cpus": 1,
            "memory": "2g",
            "shared_memory": None,
            "fgpu": None,
            "gpu_kind": None,
        },
        "time_limit": None,
        "resource_group": None,
        "account": None,
        "qos": None,
        "reservation": None,
        "constraint": None,
        "exclusive": False,
        "place": 0,
    }
    shown = admin("GET", "/admin/templates/small")
    assert shown.json == made.json
    assert admin("DELETE", "/admin/templates/small").status_code == 204
    assert admin("DELETE", "/admin/templates/small").status_code == 404


def test_invalid_templates_name_their_fields(api: MakeApi) -> None:
    admin = api("admin")
    wrong = {"resources": {"cpus": 0, "memory": "x", "gpu": 1}, "time": 5}
    named = fields(admin("PUT", "/admin/templates/small", json=wrong))
    assert set(named) == {"title", "resources.cpus", "resources.memory", "resources.gpu", "time"}
    assert fields(admin("PUT", "/admin/templates/two%20words", json=SMALL)) == ["name"]
    assert admin("GET", "/admin/templates/small").status_code == 404


def test_a_template_may_set_slurms_options(api: MakeApi, world: World) -> None:
    world.status.save_limits(world.scheduler.limits())
    admin = api("admin")
    wrong = {"account": "nobodys", "qos": "nonsense", "reservation": "later"}
    assert fields(admin("PUT", "/admin/templates/small", json=SMALL | wrong)) == ["account", "qos"]
    wrong = {"account": "two words", "constraint": "a b", "exclusive": "yes"}
    assert set(fields(admin("PUT", "/admin/templates/small", json=SMALL | wrong))) == set(wrong)
    options = {"account": "research", "qos": "normal", "exclusive": True, "constraint": "ssd"}
    made = admin("PUT", "/admin/templates/small", json=SMALL | options)
    assert made.json
    assert options.items() <= made.json.items()
    assert "account research, qos normal, constraint ssd, whole node" in str(
        admin("GET", "/journal").json
    )
    body = {"environment": "python", "template": "small", "constraint": "hdd"}
    launched = api("alice")("POST", "/sessions", json=body)
    assert launched.json
    session = launched.json["sessions"][0]
    chosen = options | {"constraint": "hdd"}
    assert {name: session[name] for name in chosen} == chosen


def test_an_outdated_edit_is_refused(api: MakeApi) -> None:
    admin = api("admin")
    first = admin("PUT", "/admin/templates/small", json=SMALL)
    seen = {"If-Match": first.headers["ETag"]}
    assert admin("GET", "/admin/templates/small").headers["ETag"] == first.headers["ETag"]
    bigger = SMALL | {"title": "Bigger"}
    assert admin("PUT", "/admin/templates/small", json=bigger, headers=seen).status_code == 200
    assert admin("PUT", "/admin/templates/small", json=SMALL, headers=seen).status_code == 409
    for path, body in (
        (IMAGE, {"seen_by": "nobody"}),
        ("/admin/caps", {"max_shared_memory": "1g"}),
    ):
        seen = {"If-Match": admin("GET", path).headers["ETag"]}
        assert admin("PUT", path, json=body, headers=seen).status_code == 200
        assert admin("PUT", path, json=body, headers=seen).status_code == 409
        assert admin("PUT", path, json=body).status_code == 200


def test_a_hidden_image_is_in_no_response(api: MakeApi, world: World) -> None:
    world.worker.read_limits()
    admin, alice, bob = api("admin"), api("alice"), api("bob")
    rule = {"seen_by": "some", "users": ["alice"]}
    put = admin("PUT", IMAGE, json=rule)
    assert put.json == {
        "environment": "python",
        "version": "3.13",
        "title": "Python",
        "seen_by": "some",
        "accounts": [],
        "users": ["alice"],
    }

    def versions(who: Api) -> list[str]:
        (found,) = who("GET", "/environments").json["environments"]  # type: ignore[index]
        return [version["version"] for version in found["versions"]]

    assert versions(alice) == versions(admin) == ["3.13", "3.12"]
    assert versions(bob) == ["3.12"]
    assert alice("POST", "/sessions", json=LAUNCH | {"version": "3.13"}).status_code == 201
    hidden = bob("POST", "/sessions", json=LAUNCH | {"version": "3.13"})
    missing = bob("POST", "/sessions", json=LAUNCH | {"version": "9.99"})
    assert hidden.text.replace("3.13", "9.99") == missing.text
    assert fields(hidden) == ["version"]
    (found,) = admin("GET", "/environments").json["environments"]  # type: ignore[index]
    assert [version["seen_by"] for version in found["versions"]] == ["some", "everybody"]
    assert "seen_by" not in alice("GET", "/environments").text
    listed = admin("GET", "/admin/images").json["images"]  # type: ignore[index]
    assert [image["seen_by"] for image in listed] == ["some", "everybody"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"seen_by": "some"}, "accounts"),
        ({"seen_by": "some", "users": ["nobody-here"]}, "users"),
        ({"seen_by": "some", "accounts": ["nothing"]}, "accounts"),
        ({"seen_by": "friends"}, "seen_by"),
        ({"seen_by": "nobody", "why": ""}, "why"),
        ({"seen_by": "some", "users": "alice"}, "users"),
        ({}, "seen_by"),
    ],
)
def test_invalid_rules_name_their_field(
    api: MakeApi, world: World, body: dict[str, Any], field: str
) -> None:
    world.worker.read_limits()
    assert fields(api("admin")("PUT", IMAGE, json=body)) == [field]


def test_no_rule_for_an_unknown_image(api: MakeApi) -> None:
    for method in ("GET", "PUT"):
        body = {"seen_by": "nobody"} if method == "PUT" else None
        answer = api("admin")(method, "/admin/images/python/2.7", json=body)
        assert answer.status_code == 404


def test_caps(api: MakeApi, world: World) -> None:
    world.worker.read_partitions()
    admin, alice = api("admin"), api("alice")
    assert admin("GET", "/admin/caps").json == NO_CAPS
    assert admin("PUT", "/admin/caps", json={"max_shared_memory": "100m"}).status_code == 200
    session = alice("POST", "/sessions", json=LAUNCH).json["sessions"][0]  # type: ignore[index]
    assert session["resources"]["shared_memory"] == "100m"
    wants = {"cpus": 1, "memory": "600m", "shared_memory": "101m"}
    refused = alice("POST", "/sessions", json=LAUNCH | {"resources": wants})
    assert fields(refused) == ["resources.shared_memory"]
    groups = alice("GET", "/resource-groups").json["resource_groups"]  # type: ignore[index]
    assert [group["max_shared_memory"] for group in groups] == ["100m"]
    for wrong in ({"max_shared_memory": "lots"}, {"max_shared_memory": 5}, {"max_idle": "1h"}):
        assert len(fields(admin("PUT", "/admin/caps", json=wrong))) == 1
    assert admin("PUT", "/admin/caps", json={}).json == NO_CAPS


def test_limits_come_with_their_commands(api: MakeApi, world: World) -> None:
    admin = api("admin")
    assert admin("GET", "/admin/limits").status_code == 503
    world.worker.read_limits()
    world.worker.read_partitions()
    found = admin("GET", "/admin/limits").json
    assert found is not None
    assert found["applied"] is True
    assert found["qos"][0]["limits"][0] == {
        "what": "Each person, all sessions together",
        "value": "3 cores and 3 GB",
        "command": "sacctmgr modify qos normal set MaxTRESPerUser=cpu=3,mem=3G",
        "set": True,
    }
    assert [group["name"] for group in found["resource_groups"]] == ["main"]


def test_the_journal(app: Flask, api: MakeApi, world: World) -> None:
    admin, alice = api("admin"), api("alice")
    body = {"username": "bob", "password": "wonderland"}
    client = app.test_client()
    for name in ("bob", "hunter2 is my password!"):
        client.post("/api/v1/tokens", json=body | {"username": name}, base_url=PORTAL)
    identifier = alice("POST", "/sessions", json=LAUNCH).json["sessions"][0]["id"]  # type: ignore[index]
    admin("DELETE", f"/sessions/{identifier}")
    answer = admin("GET", "/journal")
    assert answer.json is not None
    entries = answer.json["entries"]
    assert [(e["who"], e["action"]) for e in entries] == [
        ("admin", "session.end"),
        ("alice", "session.launch"),
        ("", "login.refused"),
        ("bob", "login.refused"),
        ("alice", "token.make"),
        ("admin", "token.make"),
    ]
    assert {e["address"] for e in entries} == {"127.0.0.1"}
    assert "hunter2" not in answer.text
    assert "wonderland" not in answer.text
    first = admin("GET", "/journal?limit=4").json
    assert first is not None
    rest = admin("GET", f"/journal?limit=4&cursor={first['next_cursor']}").json
    assert rest is not None
    assert first["entries"] + rest["entries"] == entries
    assert rest["next_cursor"] is None
    found = admin("GET", "/journal?who=alice&action=session.launch").json
    assert found is not None
    assert [e["target"] for e in found["entries"]] == [identifier]
    later = admin("GET", "/journal?since=2026-11-20T12:00:01Z").json
    assert later is not None
    assert later["entries"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [("cursor=x", "cursor"), ("limit=0", "limit"), ("since=yesterday", "since"), ("whom=x", "whom"),
     ("since=2026-11-20T12:00:00", "since"), ("who=a&who=b", "who"), ("who=" + "x" * 300, "who"),
     ("text=%00", "text")],
)  # fmt: skip
def test_an_invalid_query_is_named(api: MakeApi, query: str, field: str) -> None:
    assert fields(api("admin")("GET", f"/journal?{query}")) == [field]


def test_a_read_only_token_changes_nothing(app: Flask) -> None:
    client = app.test_client()
    body = {"username": "admin", "password": "root-of-all", "scopes": ["read", "admin"]}
    made = client.post("/api/v1/tokens", json=body, base_url=PORTAL).json
    assert made is not None
    admin = Api(client, made["token"])
    assert admin("GET", "/journal").status_code == 200
    assert admin("PUT", "/admin/caps", json={}).status_code == 403
