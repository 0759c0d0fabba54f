"""People's own images: files in their folders, and images that a registry has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.slurm.batch import Batch
from tests.support.apps import Terminal
from tests.support.client import Api
from tests.support.cluster import Cluster
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


@pytest.fixture(autouse=True)
def nothing_left(cluster: Cluster) -> Iterator[None]:
    """Alice has a folder for images, and neither images nor a cache after the test."""
    as_alice(cluster, f"rm -rf .slipway/images {FOLDER}; mkdir -p {FOLDER}")
    yield
    as_alice(cluster, f"chmod -R u+w .slipway/images; rm -rf .slipway/images {FOLDER}")


def seen_in(api: Api, session: str, command: str) -> str:
    """What a command prints in the session's terminal."""
    window = Terminal(api.open(session, "terminal"))
    try:
        return window.run(command)
    finally:
        window.close()


def test_a_file_in_a_storage_folder_runs(alice: Api, cluster: Cluster) -> None:
    as_alice(cluster, f"cp {BUSYBOX} {FOLDER}/mine.sif")
    session = launch_image(alice, "images/mine.sif")
    found = alice.wait_state(session, "RUNNING")
    assert (found["environment"], found["version"]) == ("own", "mine.sif")
    assert found["image"] == "images/mine.sif"
    text = seen_in(alice, session, "grep -c NoNewPrivs:.1 /proc/self/status; busybox | head -1")
    assert "BusyBox v1.37" in text
    # A copy runs the same image.
    again = alice.ask("POST", f"/sessions/{session}/relaunch", 201)["sessions"][0]
    alice.launched.append(again["id"])
    assert again["image"] == "images/mine.sif"
    assert alice.wait_state(again["id"], "RUNNING")


def test_an_image_of_a_registry_is_pulled_once(alice: Api, cluster: Cluster) -> None:
    with registry(cluster, OPEN) as host:
        push(cluster, OPEN, "team/tool:1.2", extra=b"first")
        image = f"docker://{host}/team/tool:1.2"
        pair = [launch_image(alice, image) for _ in range(2)]
        for session in pair:
            alice.wait_state(session, "RUNNING", seconds=90)
        logs = [alice.ask("GET", f"/sessions/{session}/log")["log"] for session in pair]
        assert sum("Converting" in log or "Pulling" in log for log in logs) == 1
        kept = as_alice(cluster, "ls .slipway/images").split()
        assert len(kept) == 1
        assert kept[0].endswith(".sif")
        # The environment is the image's; its entrypoint, an endless one, is not run.
        assert "blue:first" in seen_in(alice, pair[0], 'echo "$TEAM:$(cat /etc/extra)"')

        push(cluster, OPEN, "team/tool:1.2", extra=b"second")
        moved = launch_image(alice, image)
        alice.wait_state(moved, "RUNNING", seconds=90)
        assert "second" in seen_in(alice, moved, "cat /etc/extra")
        assert len(as_alice(cluster, "ls .slipway/images").split()) == 2


def test_a_private_registry_gets_the_saved_login(alice: Api, cluster: Cluster) -> None:
    with registry(cluster, CLOSED) as host:
        push(cluster, CLOSED, "team/secret:1")
        image = f"docker://{host}/team/secret:1"
        assert "wants a login" in end_text(alice, launch_image(alice, image))

        wrong = {"user": USER, "password": "wrong"}
        alice.ask("PUT", f"/registries/{host}", 201, json=wrong)
        assert "does not accept your saved login" in end_text(alice, launch_image(alice, image))

        right = {"user": USER, "password": PASSWORD}
        saved = alice.ask("PUT", f"/registries/{host}", 200, json=right)
        assert (saved["registry"], saved["user"], saved["last_used"]) == (host, USER, None)
        session = launch_image(alice, image)
        found = alice.wait_state(session, "RUNNING", seconds=90)
        shown = cluster.run("ctl", "scontrol", "write", "batch_script", found["job_id"], "-")
        log = alice.ask("GET", f"/sessions/{session}/log")["log"]
        assert alice.ask("GET", "/registries")["logins"][0]["last_used"]
        for text in (shown, log, json.dumps(alice.ask("GET", "/registries"))):
            assert PASSWORD not in text
        assert as_alice(cluster, "grep -rl 'open sesame' .slipway || :") == ""

        assert alice("DELETE", f"/registries/{host}").status_code == 204
        assert alice("DELETE", f"/registries/{host}").status_code == 404
        assert alice.ask("GET", "/registries")["logins"] == []


def test_slipway_sbatch_pulls_into_the_same_cache(alice: Api, cluster: Cluster) -> None:
    with registry(cluster, OPEN) as host:
        push(cluster, OPEN, "team/tool:1", extra=b"batch")
        script = "cat /etc/extra; echo; srun cat /etc/extra"
        jobs = Batch(cluster)
        job = jobs.submit(f"#!/bin/sh\n{script}\n", f"--image=docker://{host}/team/tool:1")
        assert jobs.end(job, 120).state == "COMPLETED", jobs.output(job)
        assert jobs.output(job).count("batch") == 2
        jobs.clean()
        session = launch_image(alice, f"docker://{host}/team/tool:1")
        alice.wait_state(session, "RUNNING", seconds=60)
        assert "Pulling" not in alice.ask("GET", f"/sessions/{session}/log")["log"]
        assert len(as_alice(cluster, "ls .slipway/images").split()) == 1


def test_what_the_site_forbids_is_named(alice: Api) -> None:
    answers = {
        "docker://evil.example.org/a:1": "images from evil.example.org are not permitted here; "
        "these registries are: ctl:5000, ctl:5001, registry.example.org",
        "/etc/shadow.sif": "choose a file in one of your storage folders, or in "
        "/srv/slipway/images",
        "../bob/x.sif": "write the path without //, . and ..",
    }
    for image, message in answers.items():
        response = alice("POST", "/sessions", json=launch_body(image))
        assert response.status_code == 422
        assert response.json()["errors"] == [{"field": "image", "message": message}]
