"""An administrator replaces, retires and deletes an image that sessions and jobs use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.batch import Batch
from tests.support.apps import Terminal
from tests.support.catalog import wait_for_catalog
from tests.support.client import OVER, Api
from tests.support.cluster import Cluster, in_database, wait_for

TINY = {"cpus": 1, "memory": "300m"}
DEFINITION = "/repo/tests/slurm/tool.def"
SECONDS = 120


class Tool:
    """An image of this test's own: all clusters of a clone share the folder of images."""

    version = "1"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.environment = f"tool-{cluster.project}"
        self.name = f"{self.environment}/{self.version}"
        self.folder = f"/srv/slipway/images/{self.name}"

    def command(self, *words: str) -> str:
        """Run `slipway images` as the cluster's administrator; returns what it printed."""
        return self.cluster.ctl("images", *words, seconds=SECONDS)

    def build(self, word: str) -> None:
        """Build the image with this word in its files."""
        source = ("--definition", DEFINITION, "--build-arg", f"word={word}")
        self.command("build", self.name, *source)

    def prune(self, *options: str) -> list[str]:
        """What `slipway images prune` says of the image, without the sum."""
        return self.command("prune", self.name, *options).splitlines()[:-1]

    def files(self) -> list[str]:
        """Its files; [] if there is no image."""
        listed = self.cluster.shell("portal", f"cd {self.folder} && ls image-*.sif", check=False)
        return listed.split()

    def offered(self, api: Api) -> bool:
        """Whether it can be chosen, after a change that every process of the portal has seen."""
        wait_for_catalog()
        found = api.ask("GET", "/environments")["environments"]
        return self.environment in {one["name"] for one in found}

    def listed(self) -> str:
        """Its line of `slipway images list`."""
        lines = self.command("list").splitlines()
        return next(line for line in lines if line.startswith(f"{self.name} "))

    def long_ago(self, mark: str) -> None:
        """Move the change of the link, or of the mark of retirement, 20 minutes back."""
        change = ("touch", "--no-dereference", "--date=-20 minutes", f"{self.folder}/{mark}")
        self.cluster.run("portal", *change)


@pytest.fixture
def tool(cluster: Cluster) -> Iterator[Tool]:
    """The image; deleted after the test, whatever uses it."""
    found = Tool(cluster)
    yield found
    cluster.shell("portal", f"rm -rf /srv/slipway/images/{found.environment}")


@pytest.fixture
def jobs(cluster: Cluster) -> Iterator[Batch]:
    """Alice's batch jobs."""
    found = Batch(cluster)
    yield found
    found.clean()


def aged(cluster: Cluster, table: str, column: str, *values: str) -> None:
    """Move the submission of sessions or jobs 40 minutes back."""
    when = "strftime('%Y-%m-%d %H:%M:%f', submitted, '-40 minutes') || '000'"
    chosen = ", ".join(f"'{value}'" for value in values)
    in_database(cluster, f"UPDATE {table} SET submitted = {when} WHERE {column} IN ({chosen})")


def launch(api: Api, tool: Tool, **resources: object) -> str:
    """Launch a session of the image; returns its id."""
    found: str = api.launch(
        environment=tool.environment, version=tool.version, resources=TINY | resources
    )["id"]
    return found


def end(api: Api, session: str) -> None:
    """End a session, and wait until Slurm has ended its job."""
    api.stop(session)
    api.wait_state(session, *OVER)


def waiting_job(jobs: Batch, tool: Tool) -> str:
    """A job with the image that waits, once the portal knows it."""
    settings = "cat /etc/slipway/batch.json"
    wait_for("the image", lambda: f'"{tool.environment}"' in jobs.shell(settings).stdout)
    job = jobs.submit("#!/bin/sh\ncat /second\n", f"--image={tool.name}", "--hold")
    known = f"SELECT 1 FROM job WHERE number = {job}"
    wait_for("the portal to see it", lambda: in_database(jobs.cluster, known) != "[]\n")
    return job


def shown(api: Api, session: str, file: str) -> str:
    """A file of the image, as the session's terminal shows it."""
    window = Terminal(api.open(session, "terminal"))
    try:
        return window.run(f"cat {file}")
    finally:
        window.close()


def test_an_image_is_replaced_retired_and_deleted_under_those_who_use_it(
    alice: Api, tool: Tool, jobs: Batch
) -> None:
    tool.build("old")
    assert tool.offered(alice)
    (old,) = tool.files()
    runs = launch(alice, tool)
    alice.wait_state(runs, "RUNNING")
    assert "old" in shown(alice, runs, "/first")
    waits = launch(alice, tool, memory="2900m")  # more than her share of memory
    job = waiting_job(jobs, tool)

    tool.build("new")
    (new,) = set(tool.files()) - {old}
    tool.long_ago("image.sif")
    aged(tool.cluster, "session", "id", runs, waits)
    aged(tool.cluster, "job", "number", job)
    assert tool.offered(alice)
    assert "old" in shown(alice, runs, "/second")  # which it has not read before
    after = launch(alice, tool)
    alice.wait_state(after, "RUNNING")
    assert "new" in shown(alice, after, "/second")

    # The replaced file has three users: one runs, two wait.
    queued = f"1 batch job submitted before may use it (the oldest: {job} of alice)"
    both = f"kept {tool.name}: 2 sessions of alice may use it; {queued}"
    assert tool.prune("--dry-run") == [both]
    end(alice, runs)
    assert tool.prune() == [f"kept {tool.name}: 1 session of alice may use it; {queued}"]
    end(alice, waits)
    jobs.shell(f"scontrol release {job}")
    assert jobs.end(job).state == "COMPLETED"
    assert jobs.output(job) == "old\n"
    gone = [f"would delete 1 replaced of {tool.name}"]
    wait_for("the job's end in the portal", lambda: tool.prune("--dry-run") == gone, 60)
    assert tool.files() == sorted([old, new])
    assert tool.prune() == [f"deleted 1 replaced of {tool.name}"]
    assert tool.files() == [new]

    check_retirement(alice, tool, after)


def check_retirement(alice: Api, tool: Tool, session: str) -> None:
    """Retire an image that this session has, and delete it at the end."""
    assert tool.command("retire", tool.name).splitlines() == [
        f"{tool.name} is retired: it cannot be launched any more",
        "still used by alice: 1 session",
        "their sessions go on; `slipway images prune` deletes it when they have ended",
    ]
    assert not tool.offered(alice)
    wanted = {"environment": tool.environment, "version": tool.version, "resources": TINY}
    refused = alice("POST", "/sessions", json=wanted)
    assert refused.status_code == 422
    message = f"{tool.environment} {tool.version} was retired by an administrator"
    assert refused.json()["errors"] == [{"field": "version", "message": message}]

    assert "retired" in tool.listed()
    assert tool.command("retire", "--undo", tool.name) == f"{tool.name} is offered again\n"
    tool.command("retire", tool.name)
    tool.long_ago("retired")
    assert tool.prune() == [f"kept {tool.name}: 1 session of alice may use it"]
    assert "new" in shown(alice, session, "/first")
    end(alice, session)
    assert tool.prune() == [f"deleted {tool.name}"]
    assert tool.files() == []


def test_the_portals_processes_cannot_write_images(cluster: Cluster) -> None:
    write = ("touch", "/srv/slipway/images/busybox/x", "/srv/slipway/images/busybox/1.37/x")
    found = cluster.attempt("exec", "portal", "--", "runuser", "-u", "slipway", "--", *write)
    assert found.returncode == 1
    assert found.stderr.count("Permission denied") == 2
