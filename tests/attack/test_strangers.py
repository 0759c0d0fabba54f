"""Only alice can use her resources: every URL, every app, every cookie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from tests.attack.conftest import LoggedIn
from tests.support.apps import Kernel
from tests.support.batch_jobs import cancel, sbatch, wait_for_job
from tests.support.client import SMALL, Api, Browser, Json, Visitor, http_session
from tests.support.cluster import Cluster

PAGE = {"Accept": "text/html"}

EVIL_APP = """
import os, socket, threading
path = os.path.dirname(os.environ["SLIPWAY_RUN"]) + "/terminal.sock"
os.unlink(path)
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
seen = []
ANSWER = (b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\nConnection: close\\r\\n"
    b"Set-Cookie: slipway_app=stolen; Path=/\\r\\n"
    b"Set-Cookie: slipway=stolen; Path=/; Domain=localhost\\r\\n"
    b"Set-Cookie: mine=yes; Path=/; Domain=localhost\\r\\n\\r\\nevil")
def serve():
    while True:
        stream, _ = server.accept()
        data = b""
        while b"\\r\\n\\r\\n" not in data:
            data += stream.recv(65536)
        seen.append(data.decode())
        stream.sendall(ANSWER)
        stream.close()
threading.Thread(target=serve, daemon=True).start()
"""


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """Alice's JupyterLab, opened by her."""
    return researcher.open(session["id"], "jupyterlab")


@dataclass(frozen=True)
class Hers:
    """What alice has: a session, a job that waits, a job template, and a folder."""

    session: str
    job: str
    template: str = "strangers"
    folder: str = "shared/alice/private"

    @property
    def none(self) -> Hers:
        """What nobody has."""
        return Hers("0" * 32, "4000000000", "xyzzy", "shared/nobody/private")


@pytest.fixture(scope="module")
def hers(researcher: Api, session: Json, cluster: Cluster) -> Iterator[Hers]:
    job = sbatch(cluster, "alice", "true", "--hold", "--job-name=herjob")
    wait_for_job(researcher, job, "PENDING")
    found = Hers(session["id"], job)
    body = {"script": "#!/bin/sh\n# herscript\n"}
    researcher.ask("PUT", f"/job-templates/{found.template}", 201, json=body)
    yield found
    researcher("DELETE", f"/job-templates/{found.template}")
    cancel(cluster, "alice")


def _operations(api: Api, hers: Hers) -> list[tuple[str, str, Json]]:
    """Every operation of the OpenAPI document, with a session and a job filled in."""
    found = []
    for template, operations in api.ask("GET", "/openapi.json")["paths"].items():
        path = template.format(
            session_id=hers.session,
            job_id=hers.job,
            app="jupyterlab",
            name=hers.template,
            environment="python",
            version="3.13",
            token_id="0" * 16,
            login_id="0" * 16,
            key_id="0" * 16,
            id="0" * 16,
            registry="registry.example.org",
            location=hers.folder,
            area="home",
            operation_id="0" * 16,
            upload_id="0" * 16,
            folder="private",
            kind="user",
        )
        for method, operation in operations.items():
            if method != "parameters":
                found.append((method.upper(), path, operation))
    return found


def _send(api: Api, method: str, path: str, hers: Hers) -> requests.Response:
    body: Any = {"ids": [hers.job]} if path in ACTIONS else {}
    body = SMALL if path == "/sessions" else body
    body = {"name": "x"} if path.startswith("/files/rename/") else body
    about = {"owner": "alice"} if path.startswith("/job-templates/") else {}
    about = {"text": "x"} if path.startswith("/files/search/") else about
    return api(method, path, params=about, **({"json": body} if method == "POST" else {}))


HERS = ("/sessions/", "/jobs/", "/job-templates/", "/files/")
ACTIONS = [f"/jobs/{action}" for action in ("cancel", "hold", "release", "requeue")]


def test_without_a_token_every_operation_is_refused(cluster: Cluster, hers: Hers) -> None:
    anonymous = Api(cluster, "nobody")
    operations = _operations(anonymous, hers)
    assert len(operations) > 60
    for method, path, operation in operations:
        security = operation.get("security")
        if security != [] and {} not in (security or []):  # {}: with or without a token
            answer = _send(anonymous, method, path, hers)
            assert answer.status_code == 401, (method, path, answer.text)
            assert not [
                text for text in (hers.session, "herjob", "herscript") if text in answer.text
            ]


def test_bob_finds_none_of_alices_resources(bob: Api, hers: Hers, researcher: Api) -> None:
    same = zip(_operations(bob, hers), _operations(bob, hers.none), strict=True)
    asked = 0
    for (method, path, _), (_, nowhere, _) in same:
        is_hers = path != nowhere and path.startswith(HERS)
        if method == "PUT" or not (is_hers or path in ACTIONS):  # a template is saved as one's own
            continue
        asked += 1
        answer = _send(bob, method, path, hers)
        assert answer.status_code == 404, (method, path, answer.text)
        # Exactly the same as for resources that do not exist.
        other = _send(bob, method, nowhere, hers.none)
        assert (other.status_code, other.text) == (answer.status_code, answer.text)
    assert asked > 25
    assert hers.session not in [row["id"] for row in bob.list()]
    assert hers.session not in [row["id"] for row in bob.list(owner="alice")]
    templates = bob.ask("GET", "/job-templates")["templates"]
    assert "alice" not in [template["owner"] for template in templates]
    assert researcher.get(hers.session)["state"] == "RUNNING"
    job = researcher.ask("GET", f"/jobs/{hers.job}")
    assert (job["slurm_state"], job["reason"]["code"]) == ("PENDING", "JobHeldUser")
    template = researcher.ask("GET", f"/job-templates/{hers.template}")
    assert "herscript" in template["job"]["script"]


def test_a_template_of_the_same_name_is_ones_own(bob: Api, hers: Hers, researcher: Api) -> None:
    body = {"script": "#!/bin/sh\n# bobs\n"}
    path = f"/job-templates/{hers.template}"
    bob.ask("PUT", path, 201, json=body, params={"owner": "alice"})
    assert "herscript" in researcher.ask("GET", path)["job"]["script"]
    bob("DELETE", path)


def _without(text: str, what: Hers) -> str:
    """A page without what differs at each request: tokens, and what was asked for."""
    return re.sub(r'(value|content)="[^"]{20,}"|[0-9]+', "", text.replace(what.template, ""))


def test_bobs_browser_finds_none_of_alices_jobs(
    logged_in: LoggedIn, hers: Hers, researcher: Api
) -> None:
    browser, none = logged_in("bob"), hers.none
    pages = [
        *(f"/jobs/{{job}}{part}" for part in ("", "/now", "/usage", "/output", "/output/text",
                                              "/output/download", "/output/text?stream=stderr")),
        *(f"/jobs/act/{action}?ids={{job}}" for action in ("cancel", "hold", "release", "requeue")),
        "/jobs/submitted/{job}", "/jobs/new?from={job}",
        "/jobs/new?template={template}&owner=alice",
    ]  # fmt: skip
    posts: list[tuple[str, Json]] = [
        ("/jobs/{job}/extend", {"minutes": "5"}),
        *((path.replace("/jobs/", "/jobs/act/"), {"ids": "{job}"}) for path in ACTIONS),
        ("/jobs/templates/{template}/rename", {"to": "mine"}),
        ("/jobs/templates/alice/{template}/delete", {}),
    ]
    for page in pages:
        answer, other = (browser.get(page.format(**vars(what))) for what in (hers, none))
        assert (answer.status_code, other.status_code) == (404, 404), page
        assert _without(answer.text, hers) == _without(other.text, none), page
    for page, fields in posts:
        data = {name: value.format(**vars(hers)) for name, value in fields.items()}
        assert browser.post(page.format(**vars(hers)), data).status_code == 404, page
    filters: list[Json] = [{}, {"array": hers.job}, {"open": hers.job}, {"owner": "alice"}]
    for query in filters:
        for page in ("/jobs", "/jobs/rows"):
            text = browser.get(page, params={"state": "pending", **query}).text
            assert "herjob" not in text, (page, query)
    assert "strangers" not in browser.get("/jobs/templates").text
    assert researcher.ask("GET", f"/jobs/{hers.job}")["reason"]["code"] == "JobHeldUser"
    assert researcher("GET", f"/job-templates/{hers.template}").status_code == 200


def test_bobs_browser_finds_none_of_alices_pages(
    cluster: Cluster, session: Json, lab: Visitor, researcher: Api
) -> None:
    browser = Browser(cluster, "bob")
    base = f"/sessions/{session['id']}"
    label = lab.origin.split("//")[1].split(".")[0]
    for path in (f"{base}/log", f"{base}/log/text", f"/open/{label}"):
        assert browser.get(path).status_code == 404, path
    assert browser.post(f"{base}/apps/jupyterlab/open").status_code == 404
    assert browser.post("/sessions/end", {"ids": session["id"]}).status_code == 404
    assert session["name"] not in browser.get("/sessions/rows").text
    assert researcher.get(session["id"])["state"] == "RUNNING"


def test_admin_sees_all_sessions_but_opens_no_app(admin: Api, session: Json) -> None:
    assert session["id"] in [row["id"] for row in admin.list(state="running")]
    assert admin.get(session["id"])["owner"] == "alice"
    assert admin("POST", f"/sessions/{session['id']}/apps/jupyterlab").status_code == 404


def test_admin_ends_a_session(admin: Api, alice: Api) -> None:
    session = alice.running()["id"]
    admin.stop(session)
    assert (
        alice.wait_state(session, "FINISHED")["end"]["text"] == "Ended by admin (an administrator)."
    )


def test_app_opens_by_its_own_cookie_only(
    researcher: Api, bob: Api, session: Json, lab: Visitor
) -> None:
    """Wrong cookies: none, bob's for his own app, alice's for another app of the same session."""
    bobs = bob.open(bob.running()["id"], "jupyterlab")
    terminal = researcher.open(session["id"], "terminal")
    for cookie in (None, bobs.cookie, terminal.cookie, "", "x" * 5000):
        stranger = Visitor(lab.origin)
        if cookie is not None:
            stranger.http.cookies.set(lab.cookie_name, cookie)
        for path in ("/api/status", "/api/contents/", "/lab"):
            answer = stranger.get(path, allow_redirects=False)
            assert answer.status_code in (400, 401, 431), (cookie, path, answer.status_code)
        page = stranger.get("/lab", headers=PAGE, allow_redirects=False)
        assert page.status_code in (303, 400, 431)
        if page.status_code == 303:
            assert page.headers["Location"].startswith(f"{bob.cluster.url}/open/")
        with pytest.raises(InvalidStatus):
            stranger.websocket("/api/events/subscribe")
    assert lab.get("/api/status").status_code == 200


def test_other_sites_cannot_use_alices_cookie(cluster: Cluster, lab: Visitor) -> None:
    """Requests that another page in alice's own browser could send, with her cookie."""
    for origin in ("http://evil.example.org", cluster.url, "null"):
        with pytest.raises(InvalidStatus):
            lab.websocket("/api/events/subscribe", origin=origin)
        headers = {"Origin": origin, "X-XSRFToken": lab.http.cookies.get("_xsrf", "")}
        address = f"{lab.origin}/api/kernels"
        assert lab.http.post(address, json={}, headers=headers, timeout=10).status_code == 403


def test_ticket_works_only_once(researcher: Api, session: Json) -> None:
    link = researcher.ask("POST", f"/sessions/{session['id']}/apps/jupyterlab")
    Visitor(link["url"]).enter()
    second = Visitor(link["url"])
    assert second.http.get(second.link, timeout=10).status_code == 401
    assert not second.cookie


def test_app_never_receives_portal_secrets(researcher: Api, session: Json, lab: Visitor) -> None:
    """An app that listens in place of the terminal receives no secrets, and can plant nothing."""
    visitor = researcher.open(session["id"], "terminal")
    visitor.http.cookies.set("own", "1", domain=visitor.origin.split("//")[1].split(":")[0])
    visitor.http.cookies.set("slipway", "the-login")
    cookie = visitor.cookie
    kernel = Kernel(lab)
    assert not kernel.run(EVIL_APP).error
    spoofed = {
        "X-Forwarded-User": "root",
        "X-Remote-User": "root",
        "Remote-User": "root",
        "X-Slipway-Frontend": "runners",
        "X-Forwarded-For": "6.6.6.6",
    }
    held: list[ClientConnection] = []
    # Connections to the real terminal are kept for reuse: occupy them until a new one is opened.
    # Not
    # at `/`, whose connections belong to another backend, where no WebSocket uses them.
    while visitor.get("/any", headers=spoofed).text != "evil" and len(held) < 20:
        held.append(visitor.websocket("/ws", "tty"))
    assert visitor.get("/any", headers=spoofed).text == "evil"
    for socket in held:
        socket.close()
    seen = kernel.value("import json; print(json.dumps(seen[-1]))")
    assert cookie not in seen
    assert "the-login" not in seen
    assert "own=1" in seen
    for word in ("root", "6.6.6.6", "runners"):
        assert word not in seen, seen
    assert visitor.cookie == cookie
    assert [c.domain for c in visitor.http.cookies if c.name == "mine"] == [
        visitor.origin.split("//")[1].split(":")[0]
    ]


def test_runner_routes_are_closed_to_browsers(cluster: Cluster, session: Json) -> None:
    address = f"{cluster.url}/runner/v1/sessions/{session['id']}/usage"
    headers = {"X-Slipway-Frontend": "runners", "Authorization": "Bearer x"}
    answer = http_session().post(address, json={}, headers=headers, timeout=10)
    assert answer.status_code == 404
    # From inside the cluster the port is reachable, but requires the session's own token.
    command = "curl -sk -o /dev/null -w %{http_code} -X POST -H 'Authorization: Bearer x' "
    path = f"https://portal:8443/runner/v1/sessions/{session['id']}/usage"
    assert cluster.shell("login", command + path, user="bob") == "401"
