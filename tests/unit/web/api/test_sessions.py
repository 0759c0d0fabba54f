"""The REST API: responses and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, PORTAL, Api, Browser, Runner

MakeApi = Callable[[str], Api]


def _with(path: str, value: object) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(LAUNCH))
    *places, last = path.split(".")
    target = body
    for place in places:
        target = target[place]
    target[last] = value
    return body


def test_a_launch_is_one_session_and_one_job(world: World, api: MakeApi) -> None:
    answer = api("alice")("POST", "/sessions", json=LAUNCH)
    assert answer.status_code == 201
    assert answer.json is not None
    (session,) = answer.json["sessions"]
    assert session["state"] == "PENDING"
    assert session["resources"] == {
        "cpus": 1,
        "memory": "600m",
        "shared_memory": "300m",
        "fgpu": None,
        "gpu": None,
    }
    assert [job.name for job in world.slurm.jobs] == [session["id"]]


def test_the_same_key_is_the_same_session(world: World, api: MakeApi) -> None:
    alice = api("alice")
    first = alice("POST", "/sessions", json=LAUNCH, headers={"Idempotency-Key": "one"})
    again = alice("POST", "/sessions", json=LAUNCH, headers={"Idempotency-Key": "one"})
    other = _with("resources.cpus", 2)
    third = alice("POST", "/sessions", json=other, headers={"Idempotency-Key": "one"})
    assert first.json and again.json
    assert first.json["sessions"][0]["id"] == again.json["sessions"][0]["id"]
    assert third.status_code == 409
    assert len(world.slurm.jobs) == 1


BAD = [
    ("environment", "../etc"),
    ("environment", ""),
    ("environment", 7),
    ("environment", "fortran"),
    ("version", "9.9"),
    ("version", "a b"),
    ("name", "no spaces please"),
    ("name", "abc"),
    ("name", "x" * 65),
    ("resource_group", "gpu"),
    ("resource_group", "; rm -rf ~"),
    ("resources.cpus", 0),
    ("resources.cpus", -1),
    ("resources.cpus", 1.5),
    ("resources.cpus", "1"),
    ("resources.cpus", True),
    ("resources.cpus", 5),
    ("resources.memory", 600),
    ("resources.memory", "600"),
    ("resources.memory", "1m"),
    ("resources.memory", "-1g"),
    ("resources.memory", "9999999t"),
    ("resources.memory", "4g"),
    ("resources.gpus", 1),
    ("resources", []),
    ("time_limit", 0),
    ("time_limit", 481),
    ("time_limit", "an hour"),
    ("count", 0),
    ("count", 21),
    ("env", []),
    ("surprise", None),
]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_invalid_input_names_its_field(
    world: World, api: MakeApi, field: str, value: object
) -> None:
    world.status.save_partitions(world.scheduler.partitions())
    answer = api("alice")("POST", "/sessions", json=_with(field, value))
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    assert answer.json is not None
    assert field in [error["field"] for error in answer.json["errors"]]
    assert world.slurm.jobs == []
    assert world.store.live() == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("{", "application/json", 400),
        ("[1", "application/json", 400),
        ('{"a": 1, "a": 2}', "application/json", 400),
        ('{"a": NaN}', "application/json", 400),
        ("[" * 100_000, "application/json", 400),
        ("environment=python", "application/x-www-form-urlencoded", 415),
        ("", "application/json", 400),
        ("[]", "application/json", 422),
        ("null", "application/json", 422),
        ("{}" + " " * (1 << 20), "application/json", 413),
    ],
)
def test_bodies_that_are_not_json(api: MakeApi, body: str, kind: str, status: int) -> None:
    answer = api("alice")("POST", "/sessions", data=body, content_type=kind)
    assert answer.status_code == status
    assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize("key", ["", "x" * 256, "ü"])
def test_an_invalid_idempotency_key_is_named(world: World, api: MakeApi, key: str) -> None:
    answer = api("alice")("POST", "/sessions", json=LAUNCH, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert answer.json and answer.json["errors"][0]["field"] == "Idempotency-Key"
    assert world.slurm.jobs == []


def test_slurm_down_is_reported_and_nothing_is_stored(world: World, api: MakeApi) -> None:
    world.slurm.down = True
    answer = api("alice")("POST", "/sessions", json=LAUNCH)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert world.store.live() == []


def test_listing_is_filtered_and_paged(api: MakeApi, launched: Callable[..., Runner]) -> None:
    alice = api("alice")
    made = [launched("alice").session.id for _ in range(3)]
    first = alice("GET", "/sessions?state=running&limit=2").json
    assert first is not None
    second = alice("GET", f"/sessions?limit=2&cursor={first['next_cursor']}").json
    assert second is not None
    assert sorted(s["id"] for s in first["sessions"] + second["sessions"]) == sorted(made)
    assert second["next_cursor"] is None
    finished = alice("GET", "/sessions?state=finished").json
    assert finished == {"sessions": [], "next_cursor": None}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=all", "state"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("cursor=!!", "cursor"),
        ("cursor=YWJj", "cursor"),
        ("page=2", "page"),
    ],
)
def test_invalid_queries_name_their_field(api: MakeApi, query: str, field: str) -> None:
    answer = api("alice")("GET", f"/sessions?{query}")
    assert answer.status_code == 422
    assert answer.json and answer.json["errors"][0]["field"] == field


def test_owners_and_administrators(api: MakeApi, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    bob, admin = api("bob"), api("admin")
    assert bob("GET", "/sessions").json == {"sessions": [], "next_cursor": None}
    assert bob("GET", "/sessions?owner=alice").json == {"sessions": [], "next_cursor": None}
    everybody = admin("GET", "/sessions").json
    assert everybody and [s["id"] for s in everybody["sessions"]] == [session]
    assert admin("GET", "/sessions?owner=bob").json == {"sessions": [], "next_cursor": None}
    assert admin("POST", f"/sessions/{session}/apps/terminal").status_code == 404
    assert admin("DELETE", f"/sessions/{session}").status_code == 202


def test_sessions_of_others_are_not_found(api: MakeApi, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    bob = api("bob")
    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/log"),
        ("POST", "/apps/terminal"),
        ("DELETE", "/apps/terminal"),
    ]:
        hers = bob(method, f"/sessions/{session}{path}")
        nobodys = bob(method, f"/sessions/{'0' * 32}{path}")
        assert hers.status_code == 404
        assert hers.json == nobodys.json


def test_stopping_is_idempotent(api: MakeApi, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    alice = api("alice")
    for _ in range(2):
        answer = alice("DELETE", f"/sessions/{session}")
        assert answer.status_code == 202
        assert answer.json and answer.json["state"] == "ENDING"


def test_an_app_has_an_address_with_a_ticket(api: MakeApi, launched: Callable[..., Runner]) -> None:
    session = launched("alice").session.id
    answer = api("alice")("POST", f"/sessions/{session}/apps/jupyterlab", json={"public": False})
    assert answer.json is not None
    port = answer.json["port"]
    assert answer.json["url"].startswith(f"http://127.0.0.1:{port}/.slipway/enter?ticket=")
    assert 10000 <= port <= 10199
    refused = api("alice")("POST", f"/sessions/{session}/apps/jupyterlab", json={"public": True})
    assert refused.json and refused.json["errors"][0]["field"] == "public"
    assert api("alice")("POST", f"/sessions/{session}/apps/doom").status_code == 404


def test_a_log_is_read_in_pieces(
    world: World, api: MakeApi, launched: Callable[..., Runner]
) -> None:
    session = launched("alice").session.id
    world.slurm.log = "größer".encode()[:3]
    answer = api("alice")("GET", f"/sessions/{session}/log?offset=0").json
    assert answer == {"log": "gr", "offset": 0, "next_offset": 2}
    assert api("alice")("GET", f"/sessions/{session}/log?offset=-1").status_code == 422


def test_tokens(app: Flask, api: MakeApi) -> None:
    client = app.test_client()
    for body, status in [
        ({"username": "alice", "password": "wrong"}, 401),
        ({"username": "root\0", "password": "x"}, 401),
        ({"username": "alice"}, 422),
        ({"username": "alice", "password": "wonderland", "scopes": ["all"]}, 422),
        ({"username": "alice", "password": "wonderland", "more": 1}, 422),
    ]:
        answer = client.post("/api/v1/tokens", json=body, base_url=PORTAL)
        assert answer.status_code == status, body
    reader = client.post(
        "/api/v1/tokens",
        json={"username": "alice", "password": "wonderland", "scopes": ["read"]},
        base_url=PORTAL,
    )
    assert reader.json is not None
    weak = Api(client, reader.json["token"])
    assert weak("GET", "/me").json == {"name": "alice", "admin": False}
    assert weak("POST", "/sessions", json=LAUNCH).status_code == 403
    assert api("admin")("GET", "/me").json == {"name": "admin", "admin": True}


def test_tokens_expire(world: World, api: MakeApi) -> None:
    alice = api("alice")
    world.clock.advance(days=91)
    assert alice("GET", "/me").status_code == 401


def test_the_api_ignores_cookies(alice: Browser) -> None:
    assert alice.get("/api/v1/sessions").status_code == 401


def test_tokens_and_logins_are_not_interchangeable(app: Flask, alice: Browser) -> None:
    with alice.client.session_transaction(base_url=PORTAL) as cookie:
        secret = cookie["_user_id"]
    assert Api(app.test_client(), secret)("GET", "/me").status_code == 401


def test_what_the_site_offers(world: World, api: MakeApi) -> None:
    world.status.save_partitions(world.scheduler.partitions())
    alice = api("alice")
    environments = alice("GET", "/environments").json
    groups = alice("GET", "/resource-groups").json
    assert environments and [e["name"] for e in environments["environments"]] == ["python"]
    assert [v["version"] for v in environments["environments"][0]["versions"]] == ["3.13", "3.12"]
    assert groups and groups["resource_groups"][0]["max_cpus"] == 4


def test_the_document_and_the_routes_agree(app: Flask) -> None:
    document = app.test_client().get("/api/v1/openapi.json", base_url=PORTAL).json
    assert document is not None
    described = {
        (f"/api/v1{path}".replace("{", "<").replace("}", ">"), method.upper())
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters"
    }
    routed = {
        (rule.rule.replace("<location:", "<"), method)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS")
    }
    assert described == routed
    names = set(document["components"]["schemas"])
    used = set(json.dumps(document).split('"#/components/schemas/')[1:])
    assert {part.partition('"')[0] for part in used} <= names
