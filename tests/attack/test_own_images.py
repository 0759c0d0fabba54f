"""Images that their owners made to do harm: a clear answer, and no more than a session has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LogIn
from tests.support.apps import Terminal
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.own_images import (
    BUSYBOX,
    CLOSED,
    FOLDER,
    OPEN,
    PASSWORD,
    USER,
    as_alice,
    end_text,
    launch_body,
    launch_image,
    push,
    registry,
)

BEGIN = "The session did not start: "
PATCH = """
import os, sys
name, change = sys.argv[1:]
with open(name, "r+b") as file:
    if change == "arm64":
        file.seek(45), file.write(b"04")
    elif change == "cut":
        file.truncate(100_000)
    elif change == "broken":
        size = file.seek(0, 2)
        file.seek(36_864), file.write(os.urandom(size - 36_864))
    elif change == "huge":
        file.truncate(2 << 30)
"""


@pytest.fixture(autouse=True)
def folder(cluster: Cluster) -> Iterator[None]:
    """Alice's folder of images; nothing of it is left."""
    as_alice(cluster, f"rm -rf .slipway/images {FOLDER}; mkdir -p {FOLDER}")
    yield
    as_alice(cluster, f"rm -rf .slipway/images {FOLDER} stolen.sif")


def changed(cluster: Cluster, change: str) -> None:
    """Make a copy of an image with a change."""
    as_alice(cluster, f"cp {BUSYBOX} {FOLDER}/bad.sif; chmod u+w {FOLDER}/bad.sif")
    words = ["python3", "-c", PATCH, f"{FOLDER}/bad.sif", change]
    cluster.run("n1", "runuser", "-u", "alice", "--", *words)


def built(cluster: Cluster, script: str) -> None:
    """Build an image as root whose root file system a shell script changes."""
    read = f"apptainer --silent exec --containall {BUSYBOX} tar -C / -c bin etc"
    steps = [
        "cd $(mktemp -d)",
        f"(cd / && runuser -u alice -- {read}) > root.tar",
        "mkdir root && tar -C root -xf root.tar && mkdir -p root/proc root/sys root/dev root/tmp",
        f"(cd root && mkdir -p home var/tmp opt .singularity.d/env && {script})",
        # Apptainer's own build needs more rights than a node in a container has.
        "mksquashfs root root.sqsh -quiet -no-progress",
        "apptainer sif new bad.sif",
        "apptainer sif add --datatype 4 --partfs 1 --parttype 2 --partarch 2 bad.sif root.sqsh",
        f"install -o alice -m 644 bad.sif {FOLDER}/bad.sif",
        'rm -rf "$PWD"',
    ]
    cluster.run("n1", "sh", "-c", " && ".join(steps))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("arm64", "images/bad.sif is made for arm64, but the node is amd64"),
        ("cut", "images/bad.sif is broken: it is shorter than its header says"),
        ("huge", "images/bad.sif has 2,048 MiB, and images may have 1,024 MiB here"),
        ("broken", "Apptainer could not open its environment"),
    ],
)
def test_a_file_that_is_no_image_of_this_node(
    change: str, words: str, alice: Api, cluster: Cluster
) -> None:
    changed(cluster, change)
    assert end_text(alice, launch_image(alice, "images/bad.sif")).startswith(BEGIN + words)


def test_links_that_lead_out_of_the_folder(alice: Api, cluster: Cluster) -> None:
    as_alice(cluster, f"cp {BUSYBOX} stolen.sif; ln -s ~/stolen.sif {FOLDER}/bad.sif")
    text = end_text(alice, launch_image(alice, "images/bad.sif"))
    assert text.startswith(f"{BEGIN}images/bad.sif is a link that leads out of its folder")
    as_alice(cluster, f"ln -sfn ~ {FOLDER}/up")
    text = end_text(alice, launch_image(alice, "images/up/stolen.sif"))
    assert text.startswith(f"{BEGIN}images/up/stolen.sif is a link that leads out of its folder")


def test_things_that_are_no_files(alice: Api, cluster: Cluster) -> None:
    as_alice(cluster, f"mkfifo {FOLDER}/bad.sif; mkdir {FOLDER}/dir.sif")
    for name in ("bad", "dir"):
        text = end_text(alice, launch_image(alice, f"images/{name}.sif"))
        assert text == f"{BEGIN}images/{name}.sif is not a file."


def test_set_uid_programs_have_no_effect(alice: Api, cluster: Cluster) -> None:
    built(cluster, "cp bin/busybox bin/busybox-super && chmod 4755 bin/busybox-super")
    session = launch_image(alice, "images/bad.sif")
    alice.wait_state(session, "RUNNING")
    window = Terminal(alice.open(session, "terminal"))
    seen = window.run(
        "ls -l /bin/busybox-super | cut -c1-10; /bin/busybox-super id -u; "
        "/bin/busybox-super grep -E 'NoNewPrivs|Cap' /proc/self/status | tr -d '\\t '; "
        "/bin/busybox-super mount -t tmpfs x /opt 2>&1 | head -1"
    )
    window.close()
    assert "-rwsr-xr-x" in seen
    assert "1001" in seen
    assert "NoNewPrivs:1" in seen
    for name in ("CapEff", "CapPrm", "CapAmb"):
        assert f"{name}:0000000000000000" in seen
    assert "permission denied" in seen.lower() or "not permitted" in seen


@pytest.mark.parametrize("wait", ["read -r x < /etc/pipe", "while :; do :; done"])
def test_a_start_up_that_never_ends(wait: str, alice: Api, cluster: Cluster) -> None:
    built(cluster, f"mkfifo etc/pipe; echo '{wait}' > .singularity.d/env/99-wait.sh")
    text = end_text(alice, launch_image(alice, "images/bad.sif"))
    assert text.startswith(f"{BEGIN}the image's own start-up did not end within 15 seconds")


def test_an_image_of_a_registry_for_other_machines(alice: Api, cluster: Cluster) -> None:
    with registry(cluster, OPEN) as host:
        push(cluster, OPEN, "team/arm:1", architecture="arm64")
        text = end_text(alice, launch_image(alice, f"docker://{host}/team/arm:1"))
        assert text == (
            f"{BEGIN}docker://{host}/team/arm:1 is made for arm64, but the node is amd64."
        )
        text = end_text(alice, launch_image(alice, f"docker://{host}/team/none:1"))
        assert text == f"{BEGIN}there is no image docker://{host}/team/none:1."
    text = end_text(alice, launch_image(alice, f"docker://{host}/team/arm:1"))
    assert text.startswith(f"{BEGIN}the registry {host} cannot be reached")


WATCH = """
end=$(($(date +%s) + 60))
until [ -e /tmp/watched ] || [ $(date +%s) -gt $end ]; do
  cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' > /tmp/all
  grep -ac '[o]pen sesame' /tmp/all; grep -a '[t]eam/secret' /tmp/all
done > /tmp/watch.new; rm /tmp/all; mv /tmp/watch.new /tmp/watch
"""
"""Prints how many arguments and variables of processes have the password, and those of the pull."""


@pytest.fixture
def watch(cluster: Cluster) -> Iterator[Callable[[], list[str]]]:
    """Watches the processes of n1; a call ends it and returns what it printed."""
    cluster.run("n1", "rm", "-f", "/tmp/watched", "/tmp/watch")
    cluster.run("n1", "sh", "-c", 'setsid sh -c "$0" >/dev/null 2>&1 &', WATCH)

    def seen() -> list[str]:
        cluster.run("n1", "touch", "/tmp/watched")
        found = ("exec", "n1", "--", "test", "-e", "/tmp/watch")
        wait_for("the watch", lambda: cluster.attempt(*found).returncode == 0)
        return cluster.run("n1", "cat", "/tmp/watch").splitlines()

    yield seen
    cluster.run("n1", "touch", "/tmp/watched")


@pytest.fixture
def closed(cluster: Cluster, alice: Api) -> Iterator[str]:
    """A registry with a private image; alice's login for it is deleted."""
    with registry(cluster, CLOSED) as host:
        push(cluster, CLOSED, "team/secret:1")
        yield host
        alice("DELETE", f"/registries/{host}")


def test_a_login_for_a_registry_is_seen_nowhere(
    alice: Api,
    bob: Api,
    cluster: Cluster,
    log_in: LogIn,
    closed: str,
    watch: Callable[[], list[str]],
) -> None:
    page = log_in("alice")
    page.goto(f"{cluster.url}/account/registries?registry={closed}")
    page.get_by_label("User name").fill(USER)
    page.get_by_label("Password or access token").fill(PASSWORD)
    page.get_by_role("button", name="Save the login").click()
    expect(page.locator(f'[data-registry="{closed}"]')).to_contain_text(USER)
    session = launch_image(alice, f"docker://{closed}/team/secret:1")
    job = alice.wait_state(session, "RUNNING", seconds=90)["job_id"]
    seen = watch()
    assert {line for line in seen if line.isdigit()} == {"0"}
    assert [line for line in seen if "team/secret" in line]  # it looked while the image was pulled
    texts = [
        cluster.run("ctl", "scontrol", "write", "batch_script", job, "-"),
        cluster.run("ctl", "scontrol", "--details", "show", "job", job),
        alice.ask("GET", f"/sessions/{session}/log")["log"],
    ]
    for place in ("account/registries", f"sessions/{session}", "sessions/new", "account"):
        page.goto(f"{cluster.url}/{place}")
        texts.append(page.content())
    assert not [text for text in texts if "sesame" in text]
    assert bob("GET", "/registries").json()["logins"] == []
    assert bob("DELETE", f"/registries/{closed}").status_code == 404


def test_bob_cannot_use_or_see_alices_image(alice: Api, bob: Api, cluster: Cluster) -> None:
    as_alice(cluster, f"cp {BUSYBOX} {FOLDER}/mine.sif")
    session = launch_image(alice, "images/mine.sif")
    assert bob("GET", f"/sessions/{session}").status_code == 404
    own = "/home/bob/storage/images"
    cluster.run("n1", "runuser", "-u", "bob", "--", "mkdir", "-p", own)
    try:
        text = end_text(bob, launch_image(bob, "images/mine.sif"))
    finally:
        cluster.run("n1", "rm", "-r", own)
    assert text == f"{BEGIN}there is no file images/mine.sif."
    outside = bob("POST", "/sessions", json=launch_body("/home/alice/storage/images/mine.sif"))
    assert outside.status_code == 422
