"""The Sessions page: its tabs, search, filters and order, and ending one or many sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event

from portal.core.cluster.limits import Tres
from portal.core.session.query import Sort
from portal.core.session.session import Session, State
from portal.web.pages.sessions.list_view import SORTS
from tests.support.fakes import World
from tests.support.launch_pages import two_accounts
from tests.unit.web.conftest import Api, Browser, Runner

Launched = Callable[..., Runner]
MakeApi = Callable[[str], Api]
HTMX = {"HX-Request": "true"}


def names(text: str) -> list[str]:
    """The sessions of a page, from the top."""
    return re.findall(r'<tr[^>]*data-name="([^"]+)"', text)


def links(text: str, words: str) -> list[str]:
    """The targets of a page's links whose text begins like this."""
    return [unescape(u) for u in re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>\s*{words}', text)]


def fill(world: World, template: Session, number: int, **changes: Any) -> list[Session]:
    """Store many sessions like this one."""
    many = [
        template.model_copy(
            update={
                "id": f"{n:032x}",
                "name": f"row{n:03}",
                "state": State.FINISHED,
                "created": template.created + timedelta(seconds=n),
                **changes,
            }
        )
        for n in range(number)
    ]
    world.store.add(many, None, "", {})
    return many


def test_tabs_show_counts(world: World, alice: Browser, launched: Launched) -> None:
    session = launched("alice").session
    launched("bob")
    fill(world, session, 3)
    page = alice.get("/sessions").text
    counts = re.findall(r'<span class="count">(\d+)</span>', page)
    assert counts == ["0", "3", "0"]
    assert "· waiting 1<" in page
    assert links(page, "Finished") == ["/sessions?state=finished"]


def test_search_and_filters_stay_in_every_link(
    world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session
    fill(world, session, 120)
    page = alice.get("/sessions?state=finished&q=row1&sort=name&environment=python").text
    assert names(page) == [f"row{n}" for n in range(100, 120)]
    assert 'value="row1"' in page
    kept = "q=row1&environment=python&sort=name"
    assert links(page, "Running") == [f"/sessions?state=running&{kept}"]
    assert links(page, "Session") == [f"/sessions?state=finished&{kept.replace('=name', '=-name')}"]
    assert 'aria-sort="ascending"' in page
    nothing = alice.get("/sessions?state=finished&q=%25").text
    assert "Nothing here matches" in nothing
    assert links(nothing, "Show all") == ["/sessions?state=finished"]


def test_older_and_newer_page_in_both_directions(
    world: World, alice: Browser, launched: Launched
) -> None:
    fill(world, launched("alice").session, 120)
    seen: list[list[str]] = []
    address = "/sessions?state=finished"
    while address:
        page = alice.get(address).text
        seen.append(names(page))
        address = next(iter(links(page, "Older sessions")), "")
    assert [len(rows) for rows in seen] == [50, 50, 20]
    assert [name for rows in seen for name in rows] == [f"row{n:03}" for n in reversed(range(120))]
    (back,) = re.findall(r'href="([^"]+)"[^>]*data-live><i[^>]*></i> Newer sessions', page)
    assert names(alice.get(unescape(back)).text) == seen[1]


@pytest.mark.parametrize(
    "query",
    ["state=all", "sort=price", "cursor=x", "limit=0", "q=%00", "q=" + "x" * 999, "owner=bob",
     "group=nowhere", "new=a,b,%3Cscript%3E", "sort=name&cursor=WzFd"],
)  # fmt: skip
def test_an_odd_url_shows_the_list_all_the_same(alice: Browser, query: str) -> None:
    answer = alice.get(f"/sessions?{query}")
    assert answer.status_code == 200
    assert "<script>" not in answer.text
    assert alice.get(f"/sessions/rows?{query}").status_code == 200


def test_nobody_sees_others_by_a_filter(alice: Browser, launched: Launched) -> None:
    launched("bob", name="bobswork")
    for query in ("owner=bob", "q=bob", "q=bobswork"):
        assert names(alice.get(f"/sessions?{query}").text) == []


def test_administrators_filter_by_owner(app: Flask, launched: Launched) -> None:
    launched("alice", name="hers")
    launched("bob", name="his1")
    admin = Browser(app).log_in("admin")
    page = admin.get("/sessions").text
    assert set(names(page)) == {"hers", "his1"}
    assert set(re.findall(r'class="owner">(\w+)<', page)) == {"bob", "alice"}
    assert '<option value="alice">alice</option>' in page
    only = admin.get("/sessions?owner=bob").text
    assert names(only) == ["his1"]
    assert '<option value="bob" selected>bob</option>' in only
    assert names(admin.get("/sessions?q=alice").text) == ["hers"]
    assert names(admin.get("/sessions?sort=owner").text) == ["hers", "his1"]


def test_every_order_has_its_label() -> None:
    assert set(SORTS) == set(Sort)


@pytest.mark.parametrize(("reader", "owners"), [("alice", 1), ("admin", 40)])
def test_the_number_of_queries_does_not_grow_with_the_rows(
    app: Flask, world: World, launched: Launched, reader: str, owners: int
) -> None:
    world.worker.read_partitions()
    world.worker.read_limits()
    session = launched("alice").session
    busy: dict[str, Any] = {
        "state": State.RUNNING,
        "time_limit": 30,
        "deadline": world.clock() + timedelta(minutes=30),
        "oom_kills": 1,  # its notice proposes more memory, and the menu more time
    }
    browser = Browser(app).log_in(reader)
    asked: list[str] = []
    event.listen(world.engine, "before_cursor_execute", lambda *args: asked.append(str(args[2])))

    def queries() -> tuple[int, int]:
        asked.clear()
        rows = names(browser.get("/sessions/rows").text)
        return len(rows), len([s for s in asked if s.startswith("SELECT")])

    browser.get("/sessions")
    world.force(session.id, **busy)
    few, before = queries()
    many = fill(world, session, 40, **busy)
    for number, one in enumerate(many):
        world.force(one.id, owner=f"user{number}" if owners > 1 else "alice")
    assert queries() == (few + 40, before)
    assert "SELECT app" not in str(asked).split("WHERE")[0]


def test_new_sessions_are_highlighted_once(alice: Browser, launched: Launched) -> None:
    first, second = launched("alice").session.id, launched("alice").session.id
    page = alice.get(f"/sessions?new={first},{second},{'0' * 32}").text
    (marked,) = re.findall(r'data-fresh="([^"]*)"', page)
    assert set(marked.split()) == {first, second}
    assert 'data-fresh=""' in alice.get("/sessions").text


def test_only_own_sessions_can_be_relaunched(
    app: Flask, world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    admin = Browser(app).log_in("admin")
    world.force(session, state=State.FINISHED)
    again = f'formaction="/sessions/{session}/relaunch"'
    for state in ("running", "finished"):
        mine = alice.get(f"/sessions?state={state}").text
        assert (again in mine) is (state == "finished")
        assert (f"/sessions/new?from={session}" in mine) is (state == "finished")
        assert again not in admin.get(f"/sessions?state={state}").text


# Ending


def test_without_a_script_a_page_asks_for_confirmation(alice: Browser, launched: Launched) -> None:
    session = launched("alice").session
    page = alice.get(f"/sessions/{session.id}/end?back=/sessions?q=x").text
    assert f"End {session.name}?" in page
    assert 'name="back" value="/sessions?q=x"' in page
    assert "hx-confirm" not in page
    assert 'data-state="PENDING"' in alice.get("/sessions").text


def test_the_confirmation_names_many_sessions(alice: Browser, launched: Launched) -> None:
    made = [launched("alice").session for _ in range(3)]
    query = "&".join(f"ids={session.id}" for session in made)
    page = alice.get(f"/sessions/end?{query}").text
    assert "End 3 sessions?" in page
    assert all(session.name in page for session in made)
    assert alice.get("/sessions/end").headers["Location"] == "/sessions"


@pytest.mark.parametrize("back", ["https://evil.example.org", "//evil.example.org"])
def test_the_return_url_stays_in_the_portal(alice: Browser, launched: Launched, back: str) -> None:
    session = launched("alice").session.id
    assert "evil" not in alice.get(f"/sessions/{session}/end?back={back}").text
    answer = alice.post("/sessions/end", {"ids": session, "back": back})
    assert answer.headers["Location"] == "/sessions"


def test_ending_many_responds_with_the_open_list(
    world: World, alice: Browser, launched: Launched
) -> None:
    made = [launched("alice", name=f"many{n}").session.id for n in range(3)]
    answer = alice.post("/sessions/end?q=many1", {"ids": made}, headers=HTMX)
    assert names(answer.text) == ["many1"]
    assert {s.state for s in world.store.live()} == {State.ENDING}
    assert len([line for line in world.slurm.commands if "scancel" in line]) == 1


@pytest.mark.parametrize("ids", [[], ["0" * 32], ["0" * 32] * 501])
def test_ending_unknown_sessions(alice: Browser, launched: Launched, ids: list[str]) -> None:
    launched("alice")
    assert alice.post("/sessions/end", {"ids": ids}).status_code == (404 if len(ids) == 1 else 422)
    assert 'data-state="PENDING"' in alice.get("/sessions").text


# The same by the API


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=train", ["training1"]),
        ("q=TRAIN%20python", ["training1"]),
        ("q=%25", []),
        ("environment=python&sort=name", ["bench1", "training1"]),
        ("environment=cobol", []),
        ("resource_group=nowhere", []),
        ("sort=-cpus", ["bench1", "training1"]),
    ],
)
def test_the_api_searches_filters_and_sorts(
    api: MakeApi, launched: Launched, query: str, found: list[str]
) -> None:
    launched("alice", name="training1")
    launched("alice", name="bench1", resources={"cpus": 2, "memory": "600m"})
    answer = api("alice")("GET", f"/sessions?{query}").json
    assert answer and [session["name"] for session in answer["sessions"]] == found


@pytest.mark.parametrize(
    ("query", "field"),
    [("sort=price", "sort"), ("q=%00", "q"), ("environment=" + "x" * 201, "environment"),
     ("sort=name&sort=owner", "sort"), ("group=main", "group")],
)  # fmt: skip
def test_the_api_names_invalid_queries(api: MakeApi, query: str, field: str) -> None:
    answer = api("alice")("GET", f"/sessions?{query}")
    assert answer.status_code == 422
    assert answer.json and [error["field"] for error in answer.json["errors"]] == [field]


def test_a_cursor_is_valid_for_its_own_order_only(api: MakeApi, launched: Launched) -> None:
    for _ in range(2):
        launched("alice")
    alice = api("alice")
    first = alice("GET", "/sessions?sort=name&limit=1").json
    assert first is not None
    cursor = first["next_cursor"]
    assert alice("GET", f"/sessions?sort=name&cursor={cursor}").status_code == 200
    refused = alice("GET", f"/sessions?cursor={cursor}")
    assert refused.json and refused.json["errors"][0]["field"] == "cursor"


def test_the_api_ends_many(world: World, api: MakeApi, launched: Launched) -> None:
    made = [launched("alice").session.id for _ in range(2)]
    bobs = launched("bob").session.id
    alice = api("alice")
    refused = alice("POST", "/sessions/end", json={"ids": [made[0], bobs]})
    assert refused.status_code == 404
    assert bobs not in refused.text
    assert {s.state for s in world.store.live()} == {State.PENDING}
    answer = alice("POST", "/sessions/end", json={"ids": made})
    assert answer.status_code == 202
    assert answer.json and [(s["id"], s["state"]) for s in answer.json["sessions"]] == [
        (session, "ENDING") for session in made
    ]


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": []}, {"ids": ["x"] * 501}, {"ids": "x"}, {"ids": [1]}, {"ids": ["a"], "x": 1}],
)
def test_the_api_names_invalid_ids(api: MakeApi, body: object) -> None:
    answer = api("alice")("POST", "/sessions/end", json=body)
    assert answer.status_code == 422
    assert answer.json and answer.json["errors"][0]["field"].split(".")[0] in ("ids", "x")


def test_the_bars_are_those_of_the_chosen_account(world: World, alice: Browser) -> None:
    two_accounts(world)
    found = world.status.reported().limits
    assert found is not None
    limited = [
        replace(one, user=Tres(cpus=1)) if one.name == "urgent" else one for one in found.qos
    ]
    world.status.save_limits(replace(found, qos=tuple(limited)))
    page = alice.get("/sessions").text
    assert 'name="account"' in page
    assert "<option selected>research</option>" in page
    page = alice.get("/sessions?account=crystals").text
    assert "<option selected>crystals</option>" in page
    assert re.search(r'data-meter="cpus"[^>]*data-allowed="1"', page)
    assert 'href="/sessions?state=finished&amp;account=crystals"' in page
    assert "<option selected>research</option>" in alice.get("/sessions?account=nonsense").text
