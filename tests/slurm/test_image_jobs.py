"""`slipway images build --on-cluster`: an ordinary account builds from a registry, in jobs."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.cluster import CTL, Cluster, wait_for
from tests.support.own_images import OPEN, push, registry

HOME = "/home/admin"
IMAGES = f"{HOME}/images"
SILENT = 5009
"""A port on ctl that accepts connections and never answers."""
DEFINITION = f"""
Bootstrap: docker
From: ctl:{OPEN}/team/tool:1
%post
    id -u > /made-by
    cat /etc/extra >> /made-by
"""


class Builder:
    """An account with Slipway on storage that login and compute nodes share."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def install(self) -> None:
        """Install Slipway, and give the account ids on the nodes, as root does."""
        ctl = f"{CTL} exec"
        pack = "tar -C /opt -c venv slipway/portal slipway/templates"
        unpack = "sh -c 'mkdir -p ~admin/slipway && tar -C ~admin/slipway -x'"
        copy = f"{ctl} portal -- {pack} | {ctl} login -- {unpack}"
        environment = self.cluster.environment()
        done = subprocess.run(
            ["bash", "-c", copy], env=environment, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        for node in ("n1", "n2"):
            line = "echo admin:200000:65536"
            self.cluster.shell(node, f"{line} | tee -a /etc/subuid >> /etc/subgid")

    def remove(self) -> None:
        """Undo that."""
        for node in ("n1", "n2"):
            self.cluster.shell(node, "sed -i /^admin:/d /etc/subuid /etc/subgid")
        self.cluster.shell("login", f"rm -rf {HOME}/slipway {IMAGES} {HOME}/tool.def")

    def command(self, name: str, *options: str) -> str:
        """The shell command that builds an image as a job."""
        words = ("images", "build", name, "--images", IMAGES, "--on-cluster", "--srun=--mem=400M")
        return (
            f"PYTHONPATH={HOME}/slipway/slipway APPTAINER_NOHTTPS=1 "
            f"{HOME}/slipway/venv/bin/python -m portal.cli {shlex.join([*words, *options])}"
        )

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script on the login node."""
        words = ("exec", "--user", "admin", "login", "--", "bash", "-c", script)
        return self.cluster.attempt(*words, seconds=150)

    def jobs(self) -> str:
        """The states of the account's jobs."""
        return self.cluster.run("login", "squeue", "--noheader", "--user=admin", "--format=%T")


@pytest.fixture
def builder(cluster: Cluster) -> Iterator[Builder]:
    """The account; nothing of it is left after the test."""
    found = Builder(cluster)
    found.install()
    yield found
    found.remove()


def test_an_account_without_root_builds_in_jobs(builder: Builder, cluster: Cluster) -> None:
    with registry(cluster, OPEN) as host:
        push(cluster, OPEN, "team/tool:1", extra=b"pushed")
        cluster.run("login", "sh", "-c", f"cat > {HOME}/tool.def", stdin=DEFINITION)
        source = ("--definition", "tool.def", "--title", "Tool")
        built = builder.run(builder.command("tool/1", *source))
        assert built.returncode == 0, built.stdout + built.stderr
        lines = built.stdout.splitlines()
        assert lines[0].startswith("Waiting for Slurm: srun --job-name=build-tool/1 ")
        assert f"Building tool/1 from docker: {host}/team/tool:1" in lines
        assert lines[-1].startswith("tool/1: ")
        made = f"apptainer --silent exec --containall {IMAGES}/tool/1/image.sif cat /made-by"
        assert cluster.run("n2", "runuser", "-u", "admin", "--", "sh", "-c", made) == "0\npushed"

        address = f"docker://{host}/team/other:1"
        failed = builder.run(builder.command("tool/1", "--from", address))
        assert failed.returncode == 1
        assert "slipway: apptainer build failed with status 255:" in failed.stdout
        assert "manifest unknown" in failed.stdout
        # The image that was there is the current one.
        assert cluster.run("n2", "runuser", "-u", "admin", "--", "sh", "-c", made) == "0\npushed"
    check_interruption(builder, cluster)


def check_interruption(builder: Builder, cluster: Cluster) -> None:
    """Ctrl-C ends the job, which leaves nothing behind."""
    listen = f"setsid nc -lk {SILENT} > /dev/null 2>&1 & echo $!"
    silent = cluster.run("ctl", "sh", "-c", listen).strip()
    build = builder.command("other/1", "--from", f"docker://ctl:{SILENT}/tool:1")
    # With job control, since a shell lets other background commands ignore Ctrl-C.
    words = f"set -m; {build} > out 2>&1 & echo $! > pid"
    try:
        assert builder.run(words).returncode == 0
        wait_for("the build", lambda: "Starting build" in builder.run("cat out").stdout, 60)
        assert builder.jobs() == "RUNNING\n"
        builder.run("kill -INT $(cat pid)")
        wait_for("the job's end", lambda: builder.jobs() == "", 40)
        found = builder.run(f"cat out; rm out pid; ls -A {IMAGES}")
    finally:
        cluster.run("ctl", "kill", silent)
    assert "slipway: interrupted; the image is as it was" in found.stdout
    assert found.stdout.splitlines()[-1] == "tool"
    for node in ("n1", "n2"):
        left = "ls -d /tmp/slipway-image.* /var/tmp/slipway-image.*"
        assert cluster.shell(node, left, check=False) == ""
