"""SSH into sessions: the page, the API and the key, from the click to the map."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from flask import Flask

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.core.session.session import State
from tests.support.fakes import CATALOG, World
from tests.support.launch_pages import two_accounts
from tests.support.login_node import PRIVATE_KEY
from tests.support.sessions import ALICE
from tests.unit.web.conftest import Api, Browser, Runner

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFMVzBnv6ZMm8BpxbFvIOFCYSD4x2bw0bLUYUmkyRxQa"
FINGERPRINT = "SHA256:"
MakeApi = Callable[[str], Api]


@pytest.fixture(autouse=True)
def image_with_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another image, which has SSH."""
    ssh = AppSpec(name="ssh", title="SSH and SFTP", kind="ssh", script="sshd")
    bare = Image(
        environment="busybox",
        version="1.37",
        path="/images/busybox/1.37/image.sif",
        title="BusyBox",
        apps=("terminal", "ssh"),
    )
    catalog = Catalog(apps=CATALOG.apps | {"ssh": ssh}, images=(*CATALOG.images, bare))
    monkeypatch.setattr("tests.support.fakes.CATALOG", catalog)


@pytest.fixture
def runner(app: Flask, launched: Callable[..., Runner]) -> Runner:
    """A running session of alice's in a bare image."""
    found = launched("alice", environment="busybox")
    assert found.ready().status_code == 200
    return found


def page_of(runner: Runner) -> str:
    return f"/sessions/{runner.session.id}/ssh"


def answered(runner: Runner) -> None:
    """The SSH server has started."""
    report = {"state": "ready", "message": "", "log": "", "details": KEY}
    assert runner("apps/ssh", report).status_code == 200


def test_from_the_button_to_the_map(world: World, alice: Browser, runner: Runner) -> None:
    page = page_of(runner)
    text = alice.get(page).text
    assert "Nobody can connect with SSH until you open it." in text
    assert "Open SSH" in text
    assert alice.post(page).status_code == 303
    (order,) = [order for _, order in world.runners.requests]
    assert (order["name"], order["kind"]) == ("ssh", "ssh")
    assert world.routes.map == {}
    assert "hx-get" in alice.get(page).text
    answered(runner)
    (opened,) = world.apps.opened(runner.session.id)
    key = f"{opened.label}.ssh"
    assert list(world.routes.map) == [key]
    text = alice.get(f"{page}/now").text
    assert "hx-get" not in text
    assert f"ssh -p {opened.label} -i ~/.ssh/id_container" in text
    assert FINGERPRINT in text
    assert KEY in text
    assert alice.post(f"{page}/close").status_code == 303
    assert world.routes.map == {}


def test_closed_stays_closed_until_it_is_opened(
    world: World, alice: Browser, runner: Runner
) -> None:
    page = page_of(runner)
    alice.post(page)
    answered(runner)
    route = dict(world.routes.map)
    alice.post(f"{page}/close")
    beat = {"cpu_seconds": 1, "memory_bytes": 1, "apps": {"ssh": "ready"}}
    assert runner("usage", beat).status_code == 200
    answered(runner)
    world.routes.alive = False  # HAProxy was restarted
    world.proxy.restore()
    assert world.routes.map == {}
    assert "Open SSH" in alice.get(page).text
    alice.post(page)
    assert world.routes.map == route


def test_ssh_of_a_pending_session_opens_with_it(
    world: World, alice: Browser, launched: Callable[..., Runner]
) -> None:
    runner = launched("alice", environment="busybox")
    alice.post(page_of(runner))
    assert "It opens with the session." in alice.get(page_of(runner)).text
    assert runner.ready().json["start"][0]["name"] == "ssh"  # type: ignore[index]
    answered(runner)
    assert [key.partition(".")[2] for key in world.routes.map] == ["ssh"]


@pytest.mark.parametrize("code", ["QOSMaxJobsPerUserLimit", "AssocGrpCPUMinutesLimit", "Priority"])
def test_a_waiting_session_has_the_reason_of_its_own_page(
    world: World, alice: Browser, api: MakeApi, launched: Callable[..., Runner], code: str
) -> None:
    two_accounts(world)
    runner = launched("alice", environment="busybox", account="crystals", qos="spare")
    alice.post(page_of(runner))
    assert world.store.change(runner.session.id, {State.PENDING}, pending_reason=code)
    shown = api("alice")("GET", f"/sessions/{runner.session.id}").json
    assert isinstance(shown, dict)
    text = shown["reason"]["text"]
    assert f"It opens with the session. {text}" in html.unescape(alice.get(page_of(runner)).text)
    assert ("crystals" in text or "spare" in text) is (code != "Priority")


def test_a_new_key_is_announced(alice: Browser, runner: Runner) -> None:
    page = page_of(runner)
    words = "Copies of the previous key were in your sessions"
    alice.post(page)
    answered(runner)
    assert words not in alice.get(page).text
    report = {"state": "ready", "message": "", "log": "", "details": f"{KEY} \nrenewed"}
    assert runner("apps/ssh", report).status_code == 200
    text = alice.get(f"{page}/now").text
    assert words in text
    assert "download the new one" in text
    # The host key is unchanged, also in the server's reported details.
    assert KEY.split()[1] in text


def test_the_page_shows_where_the_private_key_is(alice: Browser, runner: Runner) -> None:
    text = alice.get(page_of(runner)).text
    assert "Sessions contain only the matching public key" in text
    assert "<code>~/.slipway/key</code>" in text


def test_a_preferred_port(world: World, alice: Browser, runner: Runner) -> None:
    page = page_of(runner)
    for wrong in ("80", "22222", "no", "1" * 5000):
        answer = alice.post(page, {"preferred_port": wrong})
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.text
    assert world.apps.opened(runner.session.id) == []
    answer = alice.post(page, {"preferred_port": "10233"})
    assert answer.headers["Location"].endswith("/ssh?tried=10233")
    assert [app.label for app in world.apps.opened(runner.session.id)] == ["10233"]
    assert "is taken" not in alice.get(answer.headers["Location"]).text
    assert "Port 10234 is taken" in alice.get(f"{page}?tried=10234").text


def test_a_failed_server_has_its_reason(alice: Browser, runner: Runner) -> None:
    alice.post(page_of(runner))
    report = {"state": "failed", "message": "ssh ended (exit code 1)", "log": "no space left"}
    assert runner("apps/ssh", report).status_code == 200
    text = alice.get(page_of(runner)).text
    assert "ssh ended (exit code 1)" in text
    assert "no space left" in text
    assert "Open SSH again" in text


def test_an_ended_session(world: World, alice: Browser, runner: Runner) -> None:
    world.sessions.stop(ALICE, runner.session.id)
    assert "This session is over." in alice.get(page_of(runner)).text
    assert alice.post(page_of(runner)).status_code == 409


def test_only_the_owner_gets_the_key(world: World, alice: Browser, runner: Runner) -> None:
    answer = alice.post(f"{page_of(runner)}/key")
    assert answer.text == PRIVATE_KEY.format("alice1")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="id_container"'
    assert alice.post(f"{page_of(runner)}/key").text == answer.text
    assert alice.post(f"{page_of(runner)}/new-key").status_code == 303
    assert alice.post(f"{page_of(runner)}/key").text == PRIVATE_KEY.format("alice2")
    world.slurm.homes_away = True
    assert alice.post(f"{page_of(runner)}/key").status_code == 409


def test_the_journal_records_who_downloaded_a_key(
    alice: Browser, api: MakeApi, runner: Runner
) -> None:
    alice.post(f"{page_of(runner)}/key")
    alice.post(f"{page_of(runner)}/new-key")
    lines = api("admin")("GET", "/journal").json["entries"]  # type: ignore[index]
    found = [(line["who"], line["action"]) for line in lines if line["action"].startswith("ssh.")]
    assert found == [("alice", "ssh.renew"), ("alice", "ssh.key")]


def test_administrators_have_no_access_to_other_users_sessions(
    api: MakeApi, app: Flask, runner: Runner
) -> None:
    assert Browser(app).log_in("admin").get(page_of(runner)).status_code == 404
    assert api("admin")("GET", f"/sessions/{runner.session.id}/ssh").status_code == 404


def test_the_same_over_the_api(world: World, api: MakeApi, runner: Runner) -> None:
    program, path = api("alice"), f"/sessions/{runner.session.id}"
    closed = program("GET", f"{path}/ssh").json
    assert closed["state"] == "closed"  # type: ignore[index]
    assert closed["port"] is None  # type: ignore[index]
    program("POST", f"{path}/apps/ssh")
    answered(runner)
    endpoint = program("GET", f"{path}/ssh").json
    (opened,) = world.apps.opened(runner.session.id)
    assert endpoint is not None
    assert endpoint.pop("fingerprint").startswith(FINGERPRINT)
    assert endpoint == {
        "state": AppState.READY,
        "host": "127.0.0.1",
        "port": int(opened.label),
        "user": "alice",
        "host_key": KEY,
        "host_key_alias": f"slipway-{runner.session.id[:16]}",
    }
    assert program("DELETE", f"{path}/apps/ssh").status_code == 204
    assert program("GET", f"{path}/ssh").json["state"] == "closed"  # type: ignore[index]


def test_the_key_over_the_api(api: MakeApi, app: Flask) -> None:
    program = api("alice")
    answer = program("POST", "/me/id_container")
    assert answer.json == {"name": "id_container", "private_key": PRIVATE_KEY.format("alice1")}
    assert answer.headers["Cache-Control"] == "no-store"
    answer = program("POST", "/me/id_container", json={"new": True})
    assert answer.json["private_key"] == PRIVATE_KEY.format("alice2")  # type: ignore[index]
    body = {"username": "alice", "password": "wonderland", "scopes": ["read"]}
    made = program.client.post("/api/v1/tokens", json=body, base_url="http://localhost:8080")
    reader = Api(app.test_client(), made.json["token"])  # type: ignore[index]
    assert reader("POST", "/me/id_container").status_code == 403


def test_an_image_without_ssh_is_reported(
    alice: Browser, api: MakeApi, launched: Callable[..., Runner]
) -> None:
    runner = launched("alice")
    assert alice.get(page_of(runner)).status_code == 404
    answer = api("alice")("GET", f"/sessions/{runner.session.id}/ssh")
    assert "This session has no SSH." in answer.text


def test_one_block_finds_every_session_of_its_owner_and_nobody_elses(
    world: World, alice: Browser, bob: Browser, runner: Runner
) -> None:
    text = alice.get("/account/ssh").text
    (lookup,) = set(re.findall(r"http://localhost:8080(/ssh/[\w.-]+)/%n", text))
    name = f"slipway-{runner.session.name}"
    stranger = Browser(alice.client.application)
    closed = stranger.get(f"{lookup}/{name}/port")
    assert (closed.status_code, "SSH is not open. Open it at" in closed.text) == (404, True)
    assert stranger.get(f"{lookup}/{name}/host-key").text == ""
    alice.post(page_of(runner))
    answered(runner)
    (opened,) = world.apps.opened(runner.session.id)
    assert stranger.get(f"{lookup}/{name}/port").text == f"{opened.label}\n"
    assert stranger.get(f"{lookup}/{name}/host-key").text == f"{name} {KEY}\n"
    assert "no running session" in stranger.get(f"{lookup}/slipway-other/port").text
    text = bob.get("/account/ssh").text
    (bobs,) = set(re.findall(r"http://localhost:8080(/ssh/[\w.-]+)/%n", text))
    assert "no running session" in stranger.get(f"{bobs}/{name}/port").text
    assert stranger.get(f"{lookup}x/{name}/port").status_code == 404


def test_keys_of_ones_own_by_page_and_api(
    world: World,
    alice: Browser,
    api: MakeApi,
    runner: Runner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = alice.post("/account/ssh/keys", {"public_key": f"{KEY} me@laptop"})
    assert (added.status_code, added.headers["Location"]) == (303, "/account/ssh?done=added")
    assert "me@laptop" in alice.get("/account/ssh").text
    wrong = alice.post("/account/ssh/keys", {"public_key": f"no-pty {KEY}"})
    assert (wrong.status_code, "options are not allowed" in wrong.text) == (422, True)
    ask = api("alice")
    (known,) = ask("GET", "/me/ssh-keys").json["keys"]  # type: ignore[index]
    assert (known["comment"], known["type"]) == ("me@laptop", "ssh-ed25519")
    assert api("bob")("DELETE", f"/me/ssh-keys/{known['id']}").status_code == 404
    refused = ask("POST", "/me/ssh-keys", json={"public_key": "x"})
    assert refused.json["errors"][0]["field"] == "public_key"  # type: ignore[index]
    alice.post(page_of(runner))
    answered(runner)
    assert world.routes.map
    cut: list[str] = []
    remove = world.routes.remove

    def note(*keys: str) -> None:
        cut.extend(keys)
        remove(*keys)

    monkeypatch.setattr(world.routes, "remove", note)
    assert ask("DELETE", f"/me/ssh-keys/{known['id']}").status_code == 204
    assert world.routes.map, "open again for other keys"
    assert any(key.endswith(".ssh") for key in cut)
    assert ask("GET", "/me/ssh-keys").json == {"keys": []}
    assert ask("POST", "/me/ssh-keys", json={"public_key": KEY}).status_code == 201
