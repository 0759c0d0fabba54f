"""The day of people whose accounts are not like ours (cluster/people), from session to SSH."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT
from tests.support.ssh_access import client_of, open_ssh

ACCOUNTS = ROOT / "cluster" / "people" / "accounts"
MASKS = {"gita": "0007"}
USUAL_MASK = "0022"
REAL_HOMES = {"hal": "/home/volume1/hal"}
"""Homes whose path goes through a link."""
FROM_LOGIN = {
    "tina": "FROM_CSHRC", "finn": "FROM_FISH", "zoe": "FROM_ZSHENV", "gita": "GROUP_FOLDER",
}  # fmt: skip
"""A variable that each one's dotfiles set."""
SMALL: Json = {"environment": "debian", "resources": {"cpus": 1, "memory": "300m"}}
MINUTES = 10
SCRIPT = """#!/bin/bash
#SBATCH --output=job.out
umask
pwd -P
printf '<%s>' "$@"
echo
python3 -I -c 'import json; print(json.dumps("python works"))'
. /etc/os-release; echo "$ID $VERSION_ID"
"""


@dataclass(frozen=True)
class Person:
    """An account, and the API as its owner."""

    cluster: Cluster
    api: Api
    name: str
    home: str

    def shell(self, script: str) -> str:
        """What a script of /bin/sh prints in the home on the login node, without the dotfiles."""
        words = ["runuser", "--user", self.name, "--", "sh", "-c", f"cd {self.home} && {script}"]
        return self.cluster.run("login", *words)

    @property
    def real_home(self) -> str:
        """The home's path without links."""
        return REAL_HOMES.get(self.name, self.home)

    @property
    def mask(self) -> str:
        """The umask of a login."""
        return MASKS.get(self.name, USUAL_MASK)


def accounts() -> dict[str, str]:
    """The homes of all accounts by name."""
    lines = [line.split() for line in ACCOUNTS.read_text().splitlines() if not line.startswith("#")]
    return {name: home for name, _uid, _shell, home in lines}


def logged_in(cluster: Cluster, name: str) -> Api:
    """The API as one of them, with a password that was made for this."""
    password = secrets.token_urlsafe(12)
    cluster.run("login", "chpasswd", stdin=f"{name}:{password}\n")
    cluster.forget_attempts()
    body = {"username": name, "password": password}
    return Api(cluster, name, Api(cluster, name).ask("POST", "/tokens", 201, json=body)["token"])


@pytest.fixture(scope="module", params=list(accounts()))
def person(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Person]:
    """Each of the people in turn."""
    name = request.param
    found = Person(cluster, logged_in(cluster, name), name, accounts()[name])
    yield found
    found.api.clean_all()
    cluster.shell("ctl", f"scancel --user={name}")
    found.shell("rm -rf storage job.out image.out login.out 'my job.sh'")
    cluster.run("login", "usermod", "--lock", name)


@pytest.fixture(scope="module")
def session(person: Person) -> Json:
    """A running session of theirs, with a storage folder."""
    person.api.ask("POST", "/folders", 201, json={"name": "results"})
    asked = SMALL | {"time_limit": MINUTES, "mounts": ["results"]}
    return person.api.wait_state(person.api.launch(**asked)["id"], "RUNNING", seconds=90)


@pytest.fixture(scope="module")
def composed(person: Person, session: Json) -> dict[str, int]:
    """Two composed jobs by what they are, which run while the session is tried."""
    assert session["state"] == "RUNNING"
    variable = FROM_LOGIN.get(person.name, "HOME")
    as_login = f'#!/bin/bash -l\n#SBATCH --output=login.out\necho "${{{variable}:+set}}"\n'
    as_login += 'module load tools && echo "tools $TOOLS_VERSION"\n'
    in_image: Json = {
        "script": SCRIPT.replace("job.out", "image.out"),
        "args": ["a  b", "!", "$HOME"],
        "image": "python",
        "resources": {"memory": "300m"},
        "time_limit": 5,
    }
    bodies = {
        "image": in_image,
        "login": {"script": as_login, "resources": {"memory": "100m"}, "time_limit": 5},
    }
    return {
        what: person.api.ask("POST", "/jobs", 201, json=body)["job"]["id"]
        for what, body in bodies.items()
    }


@pytest.mark.usefixtures("composed")
@pytest.mark.timeout(400)
def test_slurm_has_the_session_that_was_asked_for(person: Person, session: Json) -> None:
    job = f"scontrol show job {session['job_id']} -o"
    fields = person.cluster.run("ctl", "sh", "-c", job).split()
    for field in (
        "Partition=main", f"TimeLimit=00:{MINUTES}:00", "Account=research", "MinMemoryNode=300M",
    ):  # fmt: skip
        assert field in fields


@pytest.mark.timeout(400)
def test_ssh_into_the_session(person: Person, session: Json, tmp_path: Path) -> None:
    client = client_of(person.api, open_ssh(person.api, session["id"]), tmp_path)
    done = client.ssh("umask; id -un; printf '<%s>' 'a  b' '!' '$HOME'; cat", stdin=b"typed")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"{person.mask}\n{person.name}\n<a  b><!><$HOME>typed"
    (tmp_path / "words").write_text("words\n")
    client.copy(str(tmp_path / "words"), f"{client.there}results/words")
    assert person.shell("cat storage/results/words") == "words\n"


@pytest.mark.timeout(400)
def test_their_files(person: Person) -> None:
    address = f"{person.cluster.url}/data/files/storage/results/from%20the%20browser.txt"
    sent = person.api.http.put(address, data=b"some words", timeout=60)
    assert sent.status_code in (200, 201, 204), sent.text
    assert person.api.http.get(address, timeout=60).content == b"some words"
    seen = person.shell("stat --format='%U %a' 'storage/results/from the browser.txt'")
    mode = 0o666 & ~int(person.mask, 8)
    assert seen == f"{person.name} {mode:o}\n"


@pytest.mark.timeout(400)
def test_a_composed_job_in_an_image(person: Person, composed: dict[str, int]) -> None:
    number = composed["image"]
    job = person.cluster.run("ctl", "scontrol", "show", "job", str(number), "-o")
    assert "TimeLimit=00:05:00" in job
    assert "MinMemoryNode=300M" in job
    assert ended(person, number) == "COMPLETED"
    lines = person.shell("cat image.out").splitlines()
    # In a container the home is mounted by both of its paths, without a link.
    assert lines == [
        person.mask, person.home, "<a  b><!><$HOME>", '"python works"', "debian 13",
    ]  # fmt: skip


@pytest.mark.timeout(400)
def test_a_composed_job_has_the_environment_of_a_login(
    person: Person, composed: dict[str, int]
) -> None:
    assert ended(person, composed["login"]) == "COMPLETED"
    lines = person.shell("cat login.out").splitlines()
    assert lines[-2:] == ["set", "tools 1.0"]


@pytest.mark.timeout(400)
def test_a_job_that_they_submit_themselves(person: Person) -> None:
    """Typed in their own login shell, with all that their dotfiles do."""
    person.shell(f"cat > 'my job.sh' <<'END'\n{SCRIPT}END")
    line = "slipway sbatch --image=python --mem=300M 'my job.sh' 'a  b' x y"
    words = ["runuser", "--login", person.name, "--command", line]
    answer = person.cluster.attempt("exec", "login", "--", *words, seconds=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    number = answer.stdout.split()[-1]
    assert ended(person, number) == "COMPLETED"
    lines = person.shell("cat job.out; rm job.out").splitlines()
    assert lines[:2] == [person.mask, person.real_home]
    assert lines[2:] == ["<a  b><x><y>", '"python works"', "debian 13"]


def ended(person: Person, number: object) -> str:
    """The state in which a job ended."""
    words = ["sacct", "--noheader", "-X", "--parsable2", "--format=State", f"--jobs={number}"]

    def state() -> str | None:
        found = person.cluster.run("login", *words).split()
        return found[0] if found and found[0] not in ("PENDING", "RUNNING", "REQUEUED") else None

    return wait_for(f"the end of job {number}", state, 120, 1)


def test_the_group_folder_is_open_to_the_whole_group(cluster: Cluster) -> None:
    """As the cluster is made, without the portal: what the other tests presume."""
    folder = "/home/group/crystal"
    script = f"umask 007; echo data > {folder}/shared; stat --format='%G %a' {folder}/shared"
    assert cluster.shell("login", script, "gita") == "crystal 660\n"
    assert cluster.shell("login", f"cat {folder}/shared; rm {folder}/shared", "zoe") == "data\n"
