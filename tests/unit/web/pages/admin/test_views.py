"""The administrators' pages, without scripts: forms, redirects and texts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from flask import Flask

from portal.core.cluster.node_use import NodeUse, UserAllocation
from tests.support.fakes import World
from tests.unit.web.conftest import Browser, Runner

Launched = Callable[..., Runner]
SMALL = {
    "name": "small",
    "title": "Small",
    "description": "To look around",
    "resources.cpus": "1",
    "resources.memory": "2 GB",
    "resources.shared_memory": "512 MB",
    "time_limit": "90",
    "resource_group": "main",
    "account": "research",
    "qos": "normal",
    "reservation": "later",
    "constraint": "ssd&zen4",
    "exclusive": "on",
}


@pytest.fixture
def admin(app: Flask, world: World) -> Browser:
    worker = world.worker
    worker.read_partitions()
    worker.read_limits()
    return Browser(app).log_in("admin")


def etag_of(page: str) -> str:
    """The ETag of the form's content."""
    found = re.search(r'name="seen" value="([0-9a-f]*)"', page)
    assert found is not None
    return found[1]


def order(browser: Browser) -> list[str]:
    return re.findall(r'data-template="([^"]+)"', browser.get("/admin/templates").text)


def test_only_administrators_see_the_link(alice: Browser, admin: Browser) -> None:
    assert 'href="/admin"' in admin.get("/sessions").text
    assert "/admin" not in alice.get("/sessions").text
    assert admin.get("/admin").headers["Location"] == "/admin/templates"


def test_a_template_is_created_changed_and_deleted(world: World, admin: Browser) -> None:
    assert "No templates yet" in admin.get("/admin/templates").text
    assert admin.post("/admin/templates", SMALL).headers["Location"] == "/admin/templates"
    page = admin.get("/admin/templates").text
    for word in (
        "Saved “Small”.",
        "To look around",
        "2 GB",
        "0.5 GB",
        "1 h 30 min",
        "main",
        "QOS normal",
    ):
        assert word in page
    form = admin.get("/admin/templates/small/edit").text
    shown = SMALL | {"resources.shared_memory": "0.5 GB", "time_limit": "1 h 30 min"}
    for field, value in shown.items():
        assert f'value="{html.escape(value)}"' in form or f">{value}</" in form, field
    assert re.search(r'value="on" checked\s+name="exclusive"', form)
    changed = SMALL | {"title": "Smaller", "seen": etag_of(form), "resource_group": ""}
    changed |= {"qos": "", "exclusive": ""}
    assert admin.post("/admin/templates/small", changed).status_code == 303
    (template,) = world.services.administration.templates()
    assert (template.title, template.resource_group, template.memory_mb) == ("Smaller", None, 2048)
    assert (template.account, template.qos, template.exclusive) == ("research", None, False)
    assert "Delete “Smaller”?" in admin.get("/admin/templates/small/delete").text
    assert admin.post("/admin/templates/small/delete").status_code == 303
    assert order(admin) == []
    assert admin.get("/admin/templates/small/edit").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "two words"), ("name", ""), ("title", ""), ("resources.cpus", "many"),
     ("resources.memory", "lots"), ("resources.shared_memory", "3 GB"), ("time_limit", "-1"),
     ("resource_group", "nowhere"), ("title", "x" * 61), ("account", "nobodys"),
     ("qos", "two words"), ("constraint", "a b"), ("exclusive", "perhaps")],
)  # fmt: skip
def test_an_invalid_field_keeps_the_rest(admin: Browser, field: str, value: str) -> None:
    answer = admin.post("/admin/templates", SMALL | {field: value})
    assert answer.status_code == 422
    named = field.replace(".", "-")
    assert f'id="error-{named}"' in answer.text
    assert answer.text.count('class="field-error"') == 1
    assert "To look around" in answer.text
    assert order(admin) == []


def test_all_wrong_fields_are_named_at_once(admin: Browser) -> None:
    wrong = SMALL | {"name": "two words", "title": "", "resources.cpus": "0"}
    answer = admin.post("/admin/templates", wrong)
    named = re.findall(r'id="error-([^"]+)"', answer.text)
    assert named == ["title", "name", "resources-cpus"]


def test_the_second_of_two_editors_gets_a_conflict_and_loses_nothing(admin: Browser) -> None:
    admin.post("/admin/templates", SMALL)
    etag = etag_of(admin.get("/admin/templates/small/edit").text)
    admin.post("/admin/templates/small", SMALL | {"title": "First", "seen": etag})
    answer = admin.post("/admin/templates/small", SMALL | {"title": "Second", "seen": etag})
    assert answer.status_code == 409
    assert "Somebody else has changed this" in answer.text
    assert 'value="Second"' in answer.text
    again = admin.post("/admin/templates", SMALL)
    assert again.status_code == 422
    assert "there is a template of this name already".capitalize() in again.text


def test_templates_move_up_and_down(admin: Browser) -> None:
    for name in ("a", "b", "c"):
        admin.post("/admin/templates", SMALL | {"name": name})
    admin.post("/admin/templates/c/move", {"to": "up"})
    assert order(admin) == ["a", "c", "b"]
    admin.post("/admin/templates/a/move", {"to": "down"})
    assert order(admin) == ["c", "a", "b"]


def test_an_image_is_hidden_from_some(admin: Browser, alice: Browser) -> None:
    assert admin.get("/admin/images").text.count("Everybody") == 2
    form = admin.get("/admin/images/python/3.13").text
    rule = {"seen_by": "some", "accounts": "", "users": "bob, admin", "seen": etag_of(form)}
    assert admin.post("/admin/images/python/3.13", rule).headers["Location"] == "/admin/images"
    assert "users bob, admin" in admin.get("/admin/images").text
    assert 'value="bob, admin"' in admin.get("/admin/images/python/3.13").text
    assert 'value="python/3.13"' not in alice.get("/sessions/new").text
    assert 'value="python/3.12"' in alice.get("/sessions/new").text
    stale = admin.post("/admin/images/python/3.13", rule | {"seen_by": "nobody"})
    assert stale.status_code == 409
    assert admin.get("/admin/images/python/2.7").status_code == 404


@pytest.mark.parametrize(
    ("rule", "field"),
    [({"accounts": "", "users": ""}, "accounts"), ({"users": "mallory"}, "users"),
     ({"accounts": "research, chess"}, "accounts"), ({"users": "<b>"}, "users")],
)  # fmt: skip
def test_an_invalid_rule_is_refused_at_its_field(
    admin: Browser, rule: dict[str, str], field: str
) -> None:
    answer = admin.post("/admin/images/python/3.13", {"seen_by": "some", **rule})
    assert answer.status_code == 422
    assert f'id="error-{field}"' in answer.text


def test_limits_and_the_cap(world: World, admin: Browser) -> None:
    page = admin.get("/admin/limits").text
    assert "3 cores and 3 GB" in page
    assert "sacctmgr modify qos normal set MaxTRESPerUser=cpu=3,mem=3G" in page
    assert "scontrol update PartitionName=main MaxTime=08:00:00" in page
    cap = {"max_shared_memory": "1500 MB", "seen": etag_of(page)}
    assert admin.post("/admin/caps", cap).headers["Location"] == "/admin/limits"
    assert world.services.administration.site_rules().max_shared_memory_mb == 1500
    page = admin.get("/admin/limits").text
    assert 'value="1500 MB"' in page
    wrong = admin.post("/admin/caps", {"max_shared_memory": "lots", "seen": etag_of(page)})
    assert wrong.status_code == 422
    assert 'id="error-max_shared_memory"' in wrong.text
    assert admin.post("/admin/caps", cap).status_code == 409
    admin.post("/admin/caps", {"max_shared_memory": "", "seen": etag_of(page)})
    assert world.services.administration.site_rules().max_shared_memory_mb is None


def test_missing_limits_are_reported_before_slurm_was_read(app: Flask) -> None:
    assert "have not been read yet" in Browser(app).log_in("admin").get("/admin/limits").text


def test_the_journal_is_searched_and_paged(
    app: Flask, world: World, admin: Browser, launched: Launched
) -> None:
    launched("alice")
    Browser(app).post("/login", {"username": "bob", "password": "wrong"})
    page = admin.get("/admin/journal").text
    assert "Launched a session" in page
    assert "Login refused" in page
    only = admin.get("/admin/journal?who=bob&action=login.refused&day=2026-11-20").text
    assert only.count("data-action=") == 1
    assert 'data-action="login.refused"' in only
    assert "Nothing found" in admin.get("/admin/journal?day=2026-11-19").text
    assert "Nothing found" in admin.get("/admin/journal?text=<script>").text
    for wrong in ("day=soon", "cursor=x", "who=" + "x" * 300):
        answer = admin.get(f"/admin/journal?{wrong}")
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
    for number in range(120):
        world.services.administration.record("alice", "login", f"n{number}")
    first = admin.get("/admin/journal?who=alice").text
    older = re.search(r'href="(/admin/journal\?[^"]*cursor=[^"]+)"', first)
    assert older is not None
    second = admin.get(older[1].replace("&amp;", "&")).text
    assert first.count("data-action=") == 100
    assert second.count("data-action=") == 22  # with her token and her launch
    assert ">n0<" in second
    assert ">n119<" in first


def test_logging_in_and_out_is_recorded(app: Flask, admin: Browser) -> None:
    alice = Browser(app).log_in("alice")
    alice.post("/login", {"username": "alice", "password": "wonderland"})  # the earlier one ends
    alice.post("/logout")
    page = admin.get("/admin/journal?who=alice").text
    assert re.findall(r'data-action="([^"]+)"', page) == ["logout", "login", "logout", "login"]


def test_the_journal_is_exported_by_its_filters(admin: Browser, alice: Browser) -> None:
    answer = admin.get("/admin/journal.csv?who=alice")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["Content-Disposition"]
    lines = answer.text.splitlines()
    assert lines[0] == "time,who,action,what,detail,target,from"
    assert len(lines) == 2
    assert ",alice,login,Logged in," in lines[1]
    assert "journal.export" in admin.get("/admin/journal.csv").text  # which is recorded itself
    assert admin.get("/admin/journal.csv?day=never").status_code == 422
    assert alice.get("/admin/journal.csv").status_code == 404


def test_nodes_and_who_uses_them(
    world: World, admin: Browser, alice: Browser, launched: Launched
) -> None:
    launched("alice").ready()
    assert world.worker.poll()
    page = admin.get("/admin/nodes").text
    assert 'data-node="n1"' in page
    assert 'href="/sessions?owner=alice"' in page
    listing = admin.get("/sessions").text
    assert "nodes up" in listing
    assert "Your share" not in listing
    assert "Your share" in admin.get("/sessions?owner=admin").text
    assert alice.get("/admin/nodes").status_code == 404


def test_nodes_out_of_service_are_named_with_their_reason(world: World, admin: Browser) -> None:
    """First, and at once in the whole list; filters and groups are in the address."""
    down = [
        NodeUse(f"n{number}", ("main",), False, 4, 8000, state="down*", reason="disk <b>")
        for number in range(60)
    ]
    world.status.nodes.save([*down, NodeUse("m1", ("gpu",), True, 4, 8000, features=("ib",))])
    page = admin.get("/admin/nodes").text
    assert "Not available: 60 nodes" in page
    assert "disk &lt;b&gt;" in page
    assert "n[0-9],<wbr>n[10-59]" in page
    assert len(re.findall('data-node="', page)) == 50
    following = re.search(r'href="([^"]*cursor=[^"]*)"', page)
    assert following is not None
    rest = admin.get(following[1].replace("&amp;", "&")).text
    assert re.findall('data-node="([^"]*)"', rest)[-1] == "m1"
    for query in ("partition=gpu", "feature=ib", "name=m*", "available=yes", "state=&name=M"):
        assert re.findall('data-node="([^"]*)"', admin.get(f"/admin/nodes?{query}").text) == ["m1"]
    assert 'data-group="ib"' in admin.get("/admin/nodes?by=feature").text
    assert "Nothing here matches" in admin.get("/admin/nodes?name=none").text
    # Links to other rows lead to the rows, below the summary, and keep the order.
    assert following[1].endswith("#nodes-title")
    assert 'name="sort" value="-name"' in admin.get("/admin/nodes?sort=-name").text


def test_numbers_of_nodes_lead_to_these_nodes(world: World, admin: Browser) -> None:
    """Also of nodes without a reason; a state that is not reported is no filter."""
    nodes = [
        NodeUse("n1", ("main",), False, 4, 8000, state="down*", reason="disk"),
        NodeUse("n2", ("main",), False, 4, 8000, state="down*"),
        NodeUse("n3", ("main",), True, 4, 8000),
    ]
    world.status.nodes.save(nodes)
    page = admin.get("/admin/nodes?by=state").text
    links = re.findall(r'data-label="Nodes"><a href="([^"]*)">', page)
    listed = [admin.get(link.replace("&amp;", "&")).text for link in links]
    assert [re.findall('data-node="([^"]*)"', rows) for rows in listed] == [["n1"], ["n2"]]
    assert "Without a reason." in listed[1]
    [group] = re.findall(r'data-group="">(.*?)</tr>', page, re.DOTALL)
    assert "not reported" in group
    assert "href" not in group


def test_more_groups_of_nodes_than_a_menu_can_have(world: World, admin: Browser) -> None:
    world.status.nodes.save(
        [
            NodeUse(
                f"n{n}", (f"p{n:03}",), False, 4, 8000, state="down*", reason=f"r{n}",
                features=tuple(f"f{m}" for m in range(3)),
            )
            for n in range(101)
        ]
    )  # fmt: skip
    page = admin.get("/admin/nodes?partition=p100").text
    assert re.findall('data-node="([^"]*)"', page) == ["n100"]
    assert "first of 101 reasons" in page
    assert "largest of 101" in page
    assert re.search(r'<input [^>]*id="n-partition"[^>]* value="p100"', page)
    assert re.search(r'<select [^>]*id="n-feature"', page)


def test_more_users_of_the_cluster_lead_to_their_jobs(world: World, admin: Browser) -> None:
    """Not to the use of sessions, which most of them do not have."""
    held = tuple(UserAllocation(f"u{n}", 1, 100, jobs=1) for n in range(8))
    world.status.nodes.save([NodeUse("n1", ("main",), True, 8, 8000, held=held)])
    link = re.search('<a href="([^"]*)">2 more</a>', admin.get("/sessions").text)
    assert link is not None
    page = admin.get(link[1]).text
    assert '<option value="owner" selected>' in page


def test_people_that_nobody_matches(admin: Browser) -> None:
    assert 'data-person="admin"' in admin.get("/admin/people?name=DMI").text
    page = admin.get("/admin/people?name=%25%3Cb%3E").text
    assert "Nobody who is logged in or has an API token has “%&lt;b&gt;”" in page
    assert "<table" not in page


def test_hiding_from_one_user_is_said_in_words(admin: Browser) -> None:
    page = admin.get("/admin/images/python/3.13").text
    assert "Everybody except" in page
    fields = {"seen_by": "except", "accounts": "", "users": "alice", "seen": etag_of(page)}
    admin.post("/admin/images/python/3.13", fields)
    assert "is now seen by everybody except alice." in admin.get("/admin/images").text
