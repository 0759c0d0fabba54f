"""Logins that are not ours: shells, variables, umask, wrappers, homes; jobs without a limit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.client import SMALL, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.cluster_file_servers import send_request
from tests.support.composed_jobs import in_home, submit_job, wait_output

PROFILE = """\
export FROM_PROFILE=yes
umask 007
module() { echo "module $1"; }
export -f module
PATH=$HOME/site:$PATH
"""
VARIABLES = """\
export SBATCH_PARTITION=short SBATCH_TIMELIMIT=3 SBATCH_MEM_PER_NODE=150 SBATCH_DEBUG=1
export SBATCH_EXPORT=NONE SBATCH_WAIT=1 SLURM_CLUSTERS=none SLURM_TIME_FORMAT=relative
export SQUEUE_FORMAT=%i SQUEUE_STATES=COMPLETED SACCT_FORMAT=JobID SCANCEL_STATE=PENDING
export SINFO_FORMAT=%P SCONTROL_ALL=1 CDPATH=/tmp
"""
WRAPPER = """\
#!/bin/bash
echo "Welcome to the cluster"
/usr/bin/env PATH=/usr/local/bin:/usr/bin:/bin sbatch "$@"
"""
SHELLS = ("/bin/tcsh", "/usr/bin/fish", "/bin/zsh")


@pytest.fixture
def dotfiles(cluster: Cluster) -> Iterator[None]:
    """Alice's start-up files."""
    keep = "for f in .bashrc .bash_profile; do [ ! -e $f ] || mv $f $f.kept; done"
    back = "for f in .bashrc .bash_profile; do rm -f $f; [ ! -e $f.kept ] || mv $f.kept $f; done"
    in_home(cluster, f"{keep}; mkdir -p site")
    put = ("sh", "-c", 'cat > "/home/alice/$1"', "sh")
    try:
        cluster.run("login", *put, ".bashrc", user="alice", stdin=VARIABLES)
        cluster.run("login", *put, ".bash_profile", user="alice", stdin=f". ~/.bashrc\n{PROFILE}")
        cluster.run("login", *put, "site/sbatch", user="alice", stdin=WRAPPER)
        in_home(cluster, "chmod 755 site/sbatch")
        yield
    finally:
        in_home(cluster, f"rm -rf site; {back}")


def asked_of_slurm(cluster: Cluster, number: str) -> dict[str, str]:
    """What Slurm has of a job."""
    text = cluster.run("ctl", "scontrol", "--oneliner", "show", "job", number)
    return dict(word.partition("=")[::2] for word in text.split() if "=" in word)


@pytest.mark.usefixtures("dotfiles")
def test_a_session_is_what_was_asked_for_and_has_the_logins_umask(
    cluster: Cluster, alice: Api
) -> None:
    session = alice.running(resource_group="main", time_limit=10)
    found = asked_of_slurm(cluster, session["job_id"])
    assert (found["Partition"], found["TimeLimit"]) == ("main", "00:10:00")
    alice.open(session["id"], "terminal")
    status = "cat /proc/$(pgrep -u alice -x ttyd | head -n 1)/status"
    assert "Umask:\t0007" in cluster.shell(session["node"], status)


@pytest.mark.usefixtures("dotfiles")
def test_a_composed_job_has_the_login_shells_environment(cluster: Cluster, alice: Api) -> None:
    name = f"login-{uuid.uuid4().hex[:8]}.out"
    script = (
        "#!/bin/bash\n"
        'echo "$FROM_PROFILE $(umask) $(module list) ${SSH_CONNECTION-none} ${SSH_CLIENT-none}"\n'
    )
    number = submit_job(alice, script=script, resource_group="main", options=[f"--output={name}"])
    found = asked_of_slurm(cluster, number)
    assert (found["Partition"], found["TimeLimit"]) == ("main", "01:00:00")
    assert wait_output(cluster, name) == "yes 0007 module list none none\n"
    body = {"script": script, "resources": {"memory": "100m"}, "test_only": True}
    said = alice.ask("POST", "/jobs", 200, json=body)["check"]
    assert said.startswith("It would start at ")  # no dump of options


@pytest.mark.usefixtures("dotfiles")
def test_an_upload_has_the_logins_umask(cluster: Cluster, make_api: MakeApi) -> None:
    alice = make_api("alice")
    cluster.shell("login", "pkill -u alice -f file-server; true")
    name = f"upload-{uuid.uuid4().hex[:8]}"
    assert wait_for(
        "an upload",
        lambda: (
            send_request(alice, "PUT", f"/data/files/home/{name}", data=b"x").status_code
            in (200, 201, 204)
        ),
    )
    assert in_home(cluster, f"stat --format=%a {name}; rm {name}") == "660\n"


def change_account(cluster: Cluster, field: int, value: str) -> None:
    """Change a field of bob's line in passwd, and end the portal's connections as bob."""
    script = f'BEGIN {{ FS = OFS = ":" }} $1 == "bob" {{ ${field} = "{value}" }} 1'
    cluster.shell(
        "login", f"awk '{script}' /etc/passwd > /tmp/passwd && cat /tmp/passwd > /etc/passwd"
    )
    cluster.shell("login", "pkill -KILL -u bob sshd; true")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[str]:
    """Bob has another login shell for a while."""
    path: str = request.param
    cluster.run("login", "test", "-x", path)
    change_account(cluster, 7, path)
    try:
        yield path
    finally:
        change_account(cluster, 7, "/bin/bash")


@pytest.mark.usefixtures("shell")
def test_the_day_of_somebody_with_another_login_shell(bob: Api) -> None:
    name = f"day-{uuid.uuid4().hex[:8]}"
    bob.ask("POST", "/folders", 201, json={"name": name})
    listed = bob.ask("GET", "/folders")["folders"]
    assert name in [folder["name"] for folder in listed]
    session = bob.running(mounts=[{"folder": name}])
    assert bob("GET", f"/sessions/{session['id']}/log").status_code == HTTPStatus.OK
    script = "#!/bin/sh\necho '!' \"$HOME\"\n"
    body: Json = {"script": script, "resources": {"memory": "100m"}}
    bob.ask("POST", "/jobs", 201, json=body)


def test_a_home_that_does_not_exist_is_named(cluster: Cluster, bob: Api) -> None:
    change_account(cluster, 6, "/home/moved")
    try:
        words = "Your home directory /home/moved does not exist on the login node."
        for path in ("/sessions", "/folders"):
            body: Json = {"name": "x"} if path == "/folders" else SMALL
            answer = bob("POST", path, json=body)
            assert (answer.status_code, words in answer.text) == (409, True), answer.text
    finally:
        change_account(cluster, 6, "/home/bob")


def test_a_session_that_was_made_unlimited(cluster: Cluster, bob: Api) -> None:
    session = bob.running(time_limit=10)
    cluster.run("ctl", "scontrol", "update", f"JobId={session['job_id']}", "TimeLimit=UNLIMITED")

    def unlimited() -> Json | None:
        found = bob.get(session["id"])
        return found if found["unlimited"] else None

    found = wait_for("the portal knows", unlimited)
    assert (found["time_limit"], found["deadline"]) == (None, None)
