"""A session lies about the apps of its image, which would show in everybody's launcher."""

from __future__ import annotations

import json
import re
import threading
import time

from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

REQUEST = (
    "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x "
    "-keyout /dev/null 2>/dev/null"
)


def _token(cluster: Cluster, bob: Api) -> tuple[str, Json]:
    """The token of a new session of bob's, read before his job has deleted it."""
    caught: list[str] = []

    def watch() -> None:
        loop = "while :; do cat ~/.slipway/sessions/*/spec.json 2>/dev/null; sleep 0.01; done"
        words = ("login", "timeout", "8", "sh", "-c", loop)
        caught.append(cluster.run(*words, user="bob", check=False))

    watcher = threading.Thread(target=watch)
    watcher.start()
    time.sleep(1)
    session = bob.launch()
    watcher.join()
    found = re.findall(r'"token": ?"([^"]+)"', "".join(caught))
    assert found, "the token was not read in time"
    return found[-1], bob.wait_state(session["id"], "RUNNING")


def _report(cluster: Cluster, session: Json, token: str, port: int) -> str:
    """Bob calls back in the name of his own runner."""
    request = cluster.run("login", "sh", "-c", REQUEST, user="bob")
    body = json.dumps(
        {
            "job_id": session["job_id"],
            "node": session["node"],
            "port": port,
            "csr": request,
            "apps": ["webapp"],
        }
    )
    words = ["curl", "-sk", "-w", "%{http_code}", "-o", "/dev/null", "-X", "POST", "--data", "@-"]
    words += ["-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json"]
    address = f"https://portal:8443/runner/v1/sessions/{session['id']}/ready"
    return cluster.run("login", *words, address, user="bob", stdin=body)


def _offered(api: Api) -> set[str]:
    """The apps of Python 3.13 in the launch form."""
    for environment in api.ask("GET", "/environments")["environments"]:
        for version in environment["versions"]:
            if (environment["name"], version["version"]) == ("python", "3.13"):
                return {app["name"] for app in version["apps"]}
    raise AssertionError("no such image")


def test_one_user_does_not_decide_which_apps_others_see(
    cluster: Cluster, alice: Api, bob: Api
) -> None:
    """M4: his session claims that the image has only the custom web app."""
    before = _offered(alice)
    assert "jupyterlab" in before
    token, session = _token(cluster, bob)
    assert _report(cluster, session, token, 1) == "200"
    offered = wait_for(
        "his own session", lambda: {a["name"] for a in bob.get(session["id"])["apps"]}
    )
    assert offered == {"webapp"}
    for _ in range(5):  # each of the portal's processes rereads them after ten seconds
        time.sleep(3)
        assert _offered(alice) == before
