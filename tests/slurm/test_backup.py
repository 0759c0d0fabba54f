"""A backup while sessions run, and its restoration into an empty state: the sessions go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.apps import Kernel
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, healthy, wait_for

SLIPWAY = ("runuser", "--user", "slipway", "--", "slipway")
STATE = "/var/lib/slipway"
SMALL: Json = {"resources": {"cpus": 1, "memory": "300m"}}


def slipway(cluster: Cluster, *words: str) -> str:
    """Run the administrator's command as the portal's account."""
    return cluster.run("portal", *SLIPWAY, *words)


@pytest.fixture
def portal_again(cluster: Cluster, alice: Api) -> Iterator[None]:
    """Whatever happened, the portal runs again before alice's sessions are ended."""
    assert alice
    yield
    cluster.shell(
        "portal",
        f"cd {STATE} && for aside in {STATE}-gone-*; do "
        f"[ -e ca ] || [ ! -e $aside ] || mv $aside/* .; rm -rf $aside; done; "
        f"rm -rf {STATE}-backup /tmp/passphrase",
    )
    for daemon in ("web", "worker"):
        cluster.ctl("daemon", "start", "portal", daemon, check=False)
    wait_for("the portal", lambda: healthy(cluster), 60)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("portal_again")
@pytest.mark.parametrize("encrypted", [False, True])
def test_sessions_go_on_in_a_restored_portal(alice: Api, cluster: Cluster, encrypted: bool) -> None:
    session = alice.running(**SMALL)
    lab = alice.open(session["id"], "jupyterlab")
    kernel = Kernel(lab)
    kernel.connect()
    assert kernel.run("a = 41").error == ""
    stream = lab.websocket("/api/events/subscribe")
    file, secret = f"{STATE}-backup", "/tmp/passphrase"
    cluster.shell("portal", f"install -d -o slipway -m 700 {file}")
    cluster.run("portal", "sh", "-c", f"cat > {secret}; chmod 644 {secret}", stdin="twelve words\n")
    options = ["--passphrase-file", secret] if encrypted else []
    # Launches while it is made: a backup has all of one or nothing of it.
    during = alice.launch(**SMALL)
    slipway(cluster, "backup", f"{file}/one", *options)
    refused = cluster.attempt(
        "exec", "portal", "--", *SLIPWAY, "restore", f"{file}/one", "--force", *options
    )
    assert "stop it first" in refused.stderr
    cluster.daemon("stop", "portal", "web", "worker")
    aside = f"{STATE}-gone-{int(encrypted)}"
    # Another host: nothing of the state is left, but the site's own certificate.
    cluster.shell(
        "portal",
        f"mkdir {aside} && cd {STATE} && mv $(ls -A | grep -v '^tls$') {aside} && ls -A",
    )
    told = slipway(cluster, "restore", f"{file}/one", *options)
    assert "restored: the state of" in told
    assert stream.ping().wait(10)  # apps need no portal
    cluster.daemon("start", "portal", "web", "worker")
    wait_for("the portal", lambda: healthy(cluster), 60)
    assert alice.wait_state(session["id"], "RUNNING")["name"] == session["name"]
    # Its runner may have met the portal's absence, and waits longer after each attempt.
    alice.wait_state(during["id"], "RUNNING", seconds=90)
    assert stream.ping().wait(10)
    assert kernel.run("print(a + 1)").text.strip() == "42"
    assert lab.get("/api/status").status_code == 200
    alice.open(session["id"], "terminal").get("/")
    heard = alice.get(session["id"])["usage"]
    assert heard is not None
    alice.running(**SMALL)
