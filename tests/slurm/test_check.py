"""`slipway check` on a real cluster, and what it says when something is wrong there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

AS_PORTAL = ("runuser", "--user", "slipway", "--")
SETTINGS = "/tmp/slipway-check.toml"


def check(cluster: Cluster, *words: str, config: str = "", seconds: float = 120) -> list[str]:
    """The lines that it prints; with other settings than the portal's."""
    options = ["--config", config] if config else []
    argv = (*AS_PORTAL, "slipway", *options, "check", *words)
    done = cluster.attempt("exec", "portal", "--", *argv, seconds=seconds)
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def changed(cluster: Cluster) -> Iterator[object]:
    """Writes a copy of the settings in which one line is another; returns its path."""

    def write(old: str, new: str) -> str:
        text = cluster.run("portal", "cat", "/etc/slipway/slipway.toml")
        assert old in text
        cluster.ctl("put", "portal", SETTINGS, stdin=text.replace(old, new))
        return SETTINGS

    yield write
    cluster.run("portal", "rm", "-f", SETTINGS)


@pytest.fixture
def nothing_left(cluster: Cluster) -> Iterator[None]:
    """Afterwards no probe's job lives, and nothing of it is in the user's home."""
    yield
    wait_for("no probe in the queue", lambda: not probes(cluster), 20)
    left = "ls .slipway/logs .slipway/sessions 2>/dev/null | grep ^check- || :"
    assert cluster.shell("login", left, user="alice") == ""


def probes(cluster: Cluster) -> list[str]:
    """The live jobs of a check."""
    over = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "COMPLETING")
    jobs = cluster.queue("alice").values()
    return [job.id for job in jobs if job.name.startswith("check-") and job.state not in over]


def test_this_cluster_is_as_it_should_be(cluster: Cluster) -> None:
    # Clusters of one clone share the images, and tests on others make faulty ones (test_ends.py).
    lines = [line for line in check(cluster) if "/images/unwell-" not in line]
    assert [line for line in lines if line.startswith("MISSING")] == []
    assert any("slipway-operator may extend sessions" in line for line in lines)
    assert any("HAProxy accepts the rendered configuration" in line for line in lines)


@pytest.mark.usefixtures("nothing_left")
def test_a_sessions_whole_way(cluster: Cluster) -> None:
    lines = check(cluster, "--session", "alice")
    assert [line for line in lines if line.startswith("MISSING")] == []
    ours = [line for line in lines if line.startswith("ok      main (")]
    for words in (
        "apptainer version", "/dev/fuse", "user namespaces", "the container starts",
        "the portal's name resolves", "TCP reaches", "TLS:", "answers calls",
        "memory is limited to 512 MiB", "processors are limited", "the portal reaches the gateway",
    ):  # fmt: skip
        assert any(words in line for line in ours), words


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("new", "words"),
    [
        ('callback = "https://nope.invalid:8443"', "the node knows no address of nope.invalid"),
        ('callback = "https://portal:8444"', "nothing listens on portal, port 8444"),
        ('callback = "https://login:22"', "does not speak TLS"),
        (
            'callback = "https://portal:8443"\ntoolkit = "/srv/nope"',
            "Slipway's own programs cannot be read on n",
        ),
    ],
)
def test_what_no_session_would_survive(
    cluster: Cluster, changed: object, new: str, words: str
) -> None:
    assert callable(changed)
    config = changed('callback = "https://portal:8443"', new)
    lines = check(cluster, "--session", "alice", config=config)
    wrong = [line for line in lines if line.startswith("MISSING main (")]
    assert any(words in line for line in wrong), lines


@pytest.mark.usefixtures("nothing_left")
def test_a_partition_that_starts_nothing_waits(cluster: Cluster) -> None:
    down = ("scontrol", "update", "PartitionName=main")
    cluster.run("ctl", *down, "State=DOWN")
    try:
        lines = check(cluster, "--session", "alice")
    finally:
        cluster.run("ctl", *down, "State=UP")
    assert any(line.startswith("WARNING main: waits (PartitionDown)") for line in lines), lines
    assert any(line.startswith("ok      short (") for line in lines), lines


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_an_interrupted_check_ends_its_jobs(cluster: Cluster, name: str) -> None:
    down = ("scontrol", "update", "PartitionName=main")
    cluster.run("ctl", *down, "State=DOWN")
    begin = ' & echo $! > /tmp/check.pid; wait $!; echo "rc $?"'
    argv = " ".join((*AS_PORTAL, "slipway", "check", "--session", "alice"))
    words = [str(cluster.control), "exec", "portal", "--", "bash", "-c", f"set -m; {argv}{begin}"]
    try:
        running = subprocess.Popen(
            words, env=cluster.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        wait_for("a job of the check", lambda: probes(cluster) or None, 30)
        time.sleep(1)
        cluster.shell("portal", f"pkill -{name} -f '[b]in/slipway check --session'")
        output, _ = running.communicate(timeout=40)
        assert "rc 130" in output, output
        assert "interrupted; its jobs are cancelled" in output
    finally:
        cluster.run("ctl", *down, "State=UP")


def test_a_session_that_cannot_call_back_says_so(cluster: Cluster, alice: Api) -> None:
    """On the nodes the portal's name leads to themselves, where nothing listens."""
    line = next(
        line for line in cluster.run("n1", "cat", "/etc/hosts").splitlines()
        if line.split()[1:2] == ["portal"]
    )  # fmt: skip
    hosts = "cp /etc/hosts /tmp/hosts && sed 's/^[0-9.]*\\(.*portal\\)/127.0.0.1\\1/' /tmp/hosts"
    for node in ("n1", "n2"):
        cluster.shell(node, f"{hosts} > /tmp/other && cat /tmp/other > /etc/hosts")
    try:
        session = alice.launch()
        begun = time.monotonic()

        def told() -> str | None:
            found = alice("GET", f"/sessions/{session['id']}").json()
            text = str((found["reason"] or {}).get("text"))
            return text if text.startswith("Its log says") else None

        text = wait_for("the last line of its log", told, 60)
        assert time.monotonic() - begun < 60
        assert "nothing listens on portal, port 8443 (connection refused)" in text
    finally:
        for node in ("n1", "n2"):
            cluster.shell(node, "cat /tmp/hosts > /etc/hosts")
    assert cluster.run("n1", "cat", "/etc/hosts").find(line) >= 0
    # The cause is gone, and the session that tried again and again starts.
    wait_for(
        "RUNNING",
        lambda: alice("GET", f"/sessions/{session['id']}").json()["state"] == "RUNNING",
        40,
    )
