"""The pages: logging in, launching, the list, ending, logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from tests.support.fakes import World, make_world
from tests.unit.web.conftest import PORTAL, Browser, Runner, make_app, make_settings

Launched = Callable[..., Runner]
FORM = {
    "environment": "python",
    "version": "3.13",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "key": "k1",
    "confirmed": "yes",
}
HTMX = {"HX-Request": "true"}


def test_the_login_is_a_new_secret_on_the_server(world: World, app: Flask) -> None:
    browser = Browser(app)
    browser.get("/login")
    with browser.client.session_transaction(base_url=PORTAL) as cookie:
        cookie["planted"] = "by somebody"
    answer = browser.post("/login", {"username": "alice", "password": "wonderland"})
    assert answer.headers["Location"] == "/sessions"
    cookie_text = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie_text
    assert "SameSite=Lax" in cookie_text
    with browser.client.session_transaction(base_url=PORTAL) as cookie:
        assert "planted" not in cookie
        secret = cookie["_user_id"]
    assert (
        world.systems.stores.logins.login(secret, world.clock()) is None
    )  # only its hash is stored


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", "wrong"), ("alice", ""), ("nobody", "x"), ("Alice", "wonderland"), ("a\0b", "x"),
     ("x" * 33, "y"), ("alice", "x" * 2000), ("alice", "a\0b"), ("../etc", "x")],
)  # fmt: skip
def test_a_failed_login_has_one_message(app: Flask, name: str, password: str) -> None:
    answer = Browser(app).post("/login", {"username": name, "password": password})
    assert answer.status_code == 401
    assert "The name or the password is wrong." in answer.text


def test_a_login_ends_when_unused_and_lasts_when_used(world: World, alice: Browser) -> None:
    for _ in range(3):
        world.clock.advance(hours=11)
        assert alice.get("/sessions").status_code == 200
    world.clock.advance(hours=11)
    assert alice.get("/sessions/rows").status_code == 200  # polling does not count as use
    world.clock.advance(hours=2)
    assert alice.get("/sessions").status_code == 303


def test_logging_out_takes_effect_on_the_server(app: Flask, alice: Browser) -> None:
    stolen = alice.client.get_cookie("slipway", domain="localhost")
    assert stolen is not None
    alice.post("/logout")
    thief = Browser(app)
    thief.client.set_cookie("slipway", stolen.value, domain="localhost")
    assert thief.get("/sessions").status_code == 303


@pytest.mark.parametrize(
    ("target", "goes_to"),
    [("/sessions?state=finished", "/sessions?state=finished"), ("//evil.org", "/sessions"),
     ("https://evil.org", "/sessions"), ("/\\evil.org", "/sessions"), ("/a\nb", "/sessions"),
     ("/files/%ff[é]|", "/files/%ff[%C3%A9]|")],
)  # fmt: skip
def test_the_login_redirects_to_the_requested_page(app: Flask, target: str, goes_to: str) -> None:
    fields = {"username": "alice", "password": "wonderland", "next": target}
    assert Browser(app).post("/login", fields).headers["Location"] == goes_to


def test_forms_without_their_token_are_refused(world: World, alice: Browser) -> None:
    answer = alice.post("/sessions", FORM | {"csrf_token": "wrong"})
    assert answer.status_code == 400
    assert world.slurm.jobs == []


@pytest.mark.parametrize("origin", ["http://x.localhost:8080", "null", "http://localhost"])
def test_forms_of_other_origins_are_refused(world: World, alice: Browser, origin: str) -> None:
    assert alice.post("/sessions", FORM, headers={"Origin": origin}).status_code == 403
    assert world.slurm.jobs == []


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 303), ("same-site", 403), ("cross-site", 403)]
)
@pytest.mark.parametrize("url", ["http://localhost:8080", "https://slipway.example.org"])
def test_a_browser_that_sends_no_referrers_can_use_forms(
    tmp_path: Path, url: str, site: str, status: int
) -> None:
    """Its forms say `Origin: null`; only the browser itself can add whose they are."""
    world = make_world(make_settings(tmp_path, public_url=url))
    browser = Browser(make_app(world), url)
    headers = {"Origin": "null", "Sec-Fetch-Site": site}
    fields = {"username": "alice", "password": "wonderland"}
    assert browser.post("/login", fields, headers=headers).status_code == status


def test_launching(world: World, alice: Browser) -> None:
    assert alice.post("/sessions", FORM).status_code == 303
    page = alice.get("/sessions").text
    assert 'data-state="PENDING"' in page
    assert "0.59 GB" in page
    alice.post("/sessions", FORM)  # a double click
    assert len(world.slurm.jobs) == 1


BAD = [
    ("environment", "cobol"),
    ("environment", ""),
    ("environment", "<script>alert(1)</script>"),
    ("version", "2.7"),
    ("name", "two words"),
    ("resources.cpus", "0"),
    ("resources.cpus", "many"),
    ("resources.cpus", "99999999999999"),
    ("resources.cpus", "5"),
    ("resources.memory", "lots"),
    ("resources.memory", "100"),
    ("resources.memory", "900 GB"),
    ("resources.memory", ""),
    ("resource_group", "nowhere"),
    ("time_limit", "-1"),
    ("time_limit", "0"),
    ("time_limit", "soon"),
    ("time_limit", "100000"),
]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(("field", "value"), BAD)
def test_invalid_input_is_reported_at_its_field(
    world: World, alice: Browser, field: str, value: str, headers: dict[str, str]
) -> None:
    world.status.save_partitions(world.scheduler.partitions())
    answer = alice.post("/sessions", FORM | {field: value}, headers=headers)
    assert answer.status_code == 422
    name = field.replace(".", "-")
    assert f'id="error-{name}"' in answer.text
    assert re.search(rf'aria-describedby="(?:[^"]* )?error-{name}[ "]', answer.text)
    assert ('aria-invalid="true"' in answer.text) is (field != "resource_group")  # one: no input
    assert "<script>alert" not in answer.text
    if field not in ("environment", "version", "resource_group"):
        kept = "100 GB" if value == "100" else value  # a number without a unit
        assert f'value="{kept}"' in answer.text
    assert world.slurm.jobs == []
    assert world.store.live() == []


def test_unknown_fields_are_reported_too(world: World, alice: Browser) -> None:
    answer = alice.post("/sessions", FORM | {"owner": "bob"})
    assert answer.status_code == 422
    assert "owner: there is no such field" in answer.text
    assert world.slurm.jobs == []


def test_an_outage_of_slurm_is_shown_in_the_panel(world: World, alice: Browser) -> None:
    world.slurm.down = True
    answer = alice.post("/sessions", FORM, headers=HTMX)
    assert answer.status_code == 503
    assert answer.headers["X-Slipway-Panel"] == "launch"
    assert 'role="alert"' in answer.text
    assert world.store.live() == []


def test_the_list_is_sent_only_if_changed(world: World, alice: Browser, launched: Launched) -> None:
    runner = launched("alice")
    first = alice.get("/sessions/rows")
    etag = first.headers["ETag"]
    assert alice.get("/sessions/rows", headers={"If-None-Match": etag}).status_code == 204
    world.clock.advance(seconds=5)
    assert alice.get("/sessions/rows", headers={"If-None-Match": etag}).status_code == 204
    runner.ready()
    changed = alice.get("/sessions/rows", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert 'data-state="RUNNING"' in changed.text


def test_the_list_contains_no_secret(alice: Browser, launched: Launched) -> None:
    launched("alice")
    text = alice.get("/sessions/rows").text
    assert "csrf" not in text
    assert re.search(r'formaction="/sessions/[0-9a-f]{32}/apps/jupyterlab/open"', text)


def test_an_ended_login_redirects_the_list_to_the_login_page(app: Flask) -> None:
    answer = Browser(app).get("/sessions/rows", headers=HTMX)
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/login")


def test_unknown_states_show_since_when(world: World, alice: Browser, launched: Launched) -> None:
    launched("alice")
    world.status.note_answer(world.clock())
    world.clock.advance(seconds=10)
    world.status.note_failure(world.clock(), "no answer")
    world.clock.advance(seconds=10)
    page = alice.get("/sessions").text
    assert 'data-state="UNKNOWN"' in page
    assert "2026-11-20T12:00:10" in page


def test_users_see_their_own_sessions_and_administrators_all(
    app: Flask, alice: Browser, bob: Browser, launched: Launched
) -> None:
    session = launched("alice").session
    admin = Browser(app).log_in("admin")
    assert session.name in alice.get("/sessions").text
    assert session.name not in bob.get("/sessions").text
    page = admin.get("/sessions").text
    assert session.name in page
    assert f"/sessions/{session.id}/end" in page
    assert f"/sessions/{session.id}/relaunch" not in page
    assert f"/sessions/{session.id}/apps/" not in page


def test_ending_works_in_every_state_and_is_idempotent(alice: Browser, launched: Launched) -> None:
    session = launched("alice").session.id
    for _ in range(2):
        answer = alice.post("/sessions/end", {"ids": session, "back": "/sessions?q=x"})
        assert answer.headers["Location"] == "/sessions?q=x"
    answer = alice.post("/sessions/end", {"ids": session}, headers=HTMX)
    assert 'data-state="ENDING"' in answer.text


def test_sessions_of_bob_are_not_found(bob: Browser, launched: Launched) -> None:
    session = launched("alice").session.id
    for path in ("log", "log/text", "log/download", "end"):
        assert bob.get(f"/sessions/{session}/{path}").status_code == 404
    assert bob.post(f"/sessions/{session}/apps/terminal/open").status_code == 404
    assert bob.post("/sessions/end", {"ids": session}).status_code == 404


def test_the_log_is_read_on_from_its_offset(
    world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    world.slurm.log = "<b>größe".encode()
    assert alice.get(f"/sessions/{session}/log").status_code == 200
    piece = alice.get(f"/sessions/{session}/log/text?offset=0")
    assert piece.text == "<b>größe"
    assert piece.headers["Content-Type"].startswith("text/plain")
    assert piece.headers["X-Next-Offset"] == "10"
    assert alice.get(f"/sessions/{session}/log/text?offset=x").status_code == 200


def test_errors_are_pages_for_people(alice: Browser) -> None:
    answer = alice.get("/no/such/page")
    assert answer.status_code == 404
    assert "Back to the sessions" in answer.text


def test_security_headers(alice: Browser) -> None:
    headers = alice.get("/sessions").headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:*" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_pages_have_no_inline_script_or_style(alice: Browser, launched: Launched) -> None:
    session = launched("alice").session.id
    for path in ("/sessions", "/sessions?state=other", f"/sessions/{session}/log", "/none"):
        text = alice.get(path).text
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)
