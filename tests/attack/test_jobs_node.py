"""Batch jobs in images on the nodes: sockets, folders, variables; the settings of the command.

Bob has a shell on the node of alice's job, as his own jobs give him one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.batch import Batch
from tests.support.cluster import Cluster, wait_for

SECRET = "m4711" + "tellnobody"
SCRIPT = f"""#!/bin/sh
# {SECRET}-script
echo ready $SLIPWAY_SLURM
sleep 120
"""

# Run by bob on her node; its argument is alice's UID.
SEARCH = r"""
import glob, json, os, socket, stat, sys
user = int(sys.argv[1])
found = {"sockets": [], "folders": [], "read": [], "lines": "", "entered": []}
for line in open("/proc/net/unix", errors="replace"):
    words = line.split()
    if len(words) > 7 and "slipway" in words[7]:
        found["sockets"].append(words[7])
for name in found["sockets"]:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(5)
        try:
            stream.connect("\0" + name[1:] if name.startswith("@") else name)
            stream.sendall(b"\0\0\0\2{}")
            answer = stream.recv(1)
        except TimeoutError:
            answer = b"waits"
        except OSError:
            continue
        if answer:
            found["entered"].append(name)
for folder in glob.glob("/tmp/slipway-*"):
    state = os.stat(folder)
    if state.st_uid == user:
        found["folders"].append([folder, oct(stat.S_IMODE(state.st_mode))])
        for name in ("", "/script", "/client"):
            if os.access(folder + name, os.R_OK):
                found["read"].append(folder + name)
for process in glob.glob("/proc/[0-9]*"):
    try:
        mine = os.stat(process).st_uid == user
        line = open(process + "/cmdline", errors="replace").read()
        found["lines"] += line.replace("\0", " ") + "\n"
    except OSError:
        continue
    for name in ("environ", "mem", "fd", "root/tmp", "cwd/", "maps") if mine else ():
        try:
            if name in ("fd", "root/tmp", "cwd/"):
                os.listdir(f"{process}/{name}")
            else:
                open(f"{process}/{name}", "rb").read(1)
            found["read"].append(f"{process}/{name}")
        except OSError:
            pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Running:
    """Alice's job in an image, with a secret in its variables."""

    id: str
    node: str
    socket: str


@pytest.fixture(scope="module")
def running(cluster: Cluster) -> Iterator[Running]:
    batch = Batch(cluster, folder="nodebatch")
    batch.write("env", f"TOKEN={SECRET}\n")
    batch.shell("chmod 600 env")
    job = batch.submit(SCRIPT, "--image=debian/12", "--env-file=env", "--output=out")
    place = wait_for(
        "the job", lambda: batch.shell("cat out").stdout.removeprefix("ready ") or None, 60
    )
    node = cluster.run("login", "squeue", "-h", f"--jobs={job}", "--format=%N").strip()
    yield Running(job, node, place.strip())
    batch.clean()


def test_another_user_of_the_node_enters_and_reads_nothing(
    running: Running, cluster: Cluster
) -> None:
    user = cluster.run("login", "id", "-u", "alice").strip()
    text = cluster.run(running.node, "python3", "-c", SEARCH, user, user="bob")
    found = json.loads(text)
    assert found["folders"] == []  # it has gone, once the container has what was in it
    assert f"@{running.socket}" in found["sockets"]
    assert (found["entered"], found["read"]) == ([], [])
    assert "node-batch" in found["lines"]
    assert SECRET not in found["lines"]


def test_slurm_tells_bob_nothing_of_its_variables_and_script(
    running: Running, cluster: Cluster
) -> None:
    job = running.id
    for line in (
        f"scontrol show job -dd {job}",
        f"scontrol write batch_script {job} -",
        f"sacct --allusers --batch-script --jobs {job}",
        f"sacct --allusers --env-vars --jobs {job}",
        f"squeue --json --jobs {job}",
        f"sacct --allusers --json --jobs {job}",
        f"sstat --allsteps --jobs {job}",
    ):
        done = cluster.attempt("exec", "--user", "bob", "login", "--", *line.split())
        assert SECRET not in done.stdout + done.stderr, line


def test_bobs_own_container_does_not_reach_hers(running: Running, cluster: Cluster) -> None:
    """The client in his image is told her socket; /tmp is the node's in both."""
    his = Batch(cluster, "bob", folder="nodebatch")
    script = (
        f"#!/bin/sh\nexec 2>&1\nSLIPWAY_SLURM={running.socket} squeue -h -j {running.id}\n"
        "for s in /tmp/slipway-*/; do cat $s/script; done; id -un; squeue -h --me -o '%u'\n"
    )
    wait = ("--wait", f"--nodelist={running.node}", "--image=debian/12")
    try:
        job = his.submit(script, *wait)
        out = his.output(job)
    finally:
        his.clean()
    assert SECRET not in out
    assert "sleep 120" not in out
    assert out.splitlines()[-2:] == ["bob", "bob"]
    assert "another user's process answers" in out
    assert "No such file" in out


WRITERS = ("alice", "bob")
COMMAND = ("/usr/local/bin/slipway", "/etc/slipway/batch.json")


def _above(path: str) -> list[str]:
    return [path, *map(str, Path(path).parents)]


@pytest.mark.parametrize("machine", ["login", "n1", "n2"])
def test_nobody_changes_the_command_its_settings_or_images(machine: str, cluster: Cluster) -> None:
    """Whoever could would run programs as everybody who submits."""
    settings = json.loads(cluster.run("login", "cat", COMMAND[1]))
    images = [image["path"] for image in settings["images"]]
    assert images
    named = [*COMMAND, settings["command"], settings["toolkit"], *images]
    real = cluster.run(machine, "readlink", "-m", *named).split()
    places = sorted({place for path in (*named, *real) for place in _above(path)})
    check = f'for p in {shlex.join(places)}; do [ ! -w "$p" ] || echo "$p"; done'
    for user in WRITERS:
        done = cluster.attempt("exec", "--user", user, machine, "--", "sh", "-c", check)
        assert done.stdout == "", (user, done.stdout)
        assert done.returncode == 0, done.stderr


def test_settings_of_ones_own_are_ones_own(cluster: Cluster) -> None:
    """They change what one submits oneself, which an account on the cluster can do anyhow."""
    his = Batch(cluster, "bob", folder="settings")
    settings = json.loads(cluster.run("login", "cat", COMMAND[1]))
    his.write("mine.json", json.dumps({**settings, "command": "/home/bob/settings/evil"}))
    line = "SLIPWAY_BATCH_SETTINGS=$PWD/mine.json slipway sbatch --dry-run --image=debian/12"
    mine = his.shell(line, stdin="#!/bin/sh\n").stdout
    theirs = Batch(cluster, "alice", folder="settings")
    hers = theirs.shell("slipway sbatch --dry-run --image=debian/12", stdin="#!/bin/sh\n").stdout
    for batch in (his, theirs):
        batch.clean()
    assert "\nset -- /home/bob/settings/evil " in mine
    assert f"\nset -- {settings['command']} " in hers
