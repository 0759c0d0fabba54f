"""Who comes in: names with dots and @, administrators by group, a login node that is down."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.portal_settings import SETTINGS, change_settings

MACHINES = ("ctl", "login", "n1", "n2")
SMALL: Json = {"resources": {"cpus": 1, "memory": "300m"}}
STAFF = "hpc-staff"
AWAY = "ctl"
"""Named as the first login node: a machine without sshd."""
NAMES = ("j.doe", "j-doe.2@example.org")
SECONDS = 180


@dataclass
class Account:
    """An account of the cluster with a name that useradd itself would refuse."""

    cluster: Cluster
    name: str
    uid: int
    password: str

    def add(self) -> None:
        """Create it on all machines, and in Slurm."""
        for machine in MACHINES:
            self.cluster.run(
                machine, "useradd", "--badname", "--uid", str(self.uid), "--user-group",
                "--no-create-home", "--home-dir", self.home, "--shell", "/bin/bash", self.name,
            )  # fmt: skip
        login = self.cluster.run
        login("login", "usermod", "--append", "--groups", "people", self.name)
        login("login", "chpasswd", stdin=f"{self.name}:{self.password}\n")
        owner = f"{self.uid}:{self.uid}"
        self.cluster.shell(
            "login",
            f"mkdir -p '{self.home}' && chown {owner} '{self.home}' && chmod 700 '{self.home}'",
        )
        login("ctl", "sacctmgr", "-i", "add", "user", self.name, "account=research")

    def remove(self) -> None:
        """Remove all traces of it, also of an attempt that was interrupted."""
        self.cluster.shell("login", f"scancel --user='{self.name}'; true")
        self.cluster.run("ctl", "sacctmgr", "-i", "delete", "user", self.name, check=False)
        for machine in MACHINES:
            script = f"pkill -KILL -u {self.uid}; userdel -f '{self.name}'; groupdel '{self.name}'"
            self.cluster.shell(machine, f"{script}; true")
        self.cluster.shell("login", f"rm -rf '{self.home}'")

    @property
    def home(self) -> str:
        return f"/home/{self.name}"

    def log_in(self) -> Api:
        """The API as this person, after a log-in with the password."""
        self.cluster.forget_attempts()
        body = {"username": self.name, "password": self.password}
        token = Api(self.cluster, "").ask("POST", "/tokens", 201, json=body)["token"]
        return Api(self.cluster, self.name, token)


@pytest.fixture(scope="module", autouse=True)
def _site(cluster: Cluster) -> Iterator[None]:
    """The site's own rule for names, a group of administrators and two login nodes."""
    before = cluster.run("portal", "cat", SETTINGS)
    try:
        pattern = 'account_pattern = "[A-Za-z][A-Za-z0-9._@-]{0,63}"'
        cluster.shell("portal", f"sed -i '/^host = \"login\"$/d; /^account_pattern/d' {SETTINGS}")
        change_settings(cluster, pattern, f'hosts = ["{AWAY}", "login"]', section="login")
        change_settings(cluster, f'admin_groups = ["{STAFF}"]', section="slurm")
        cluster.take_settings(cluster.run("portal", "cat", SETTINGS))
        cluster.shell("login", f"getent group {STAFF} || groupadd {STAFF}")
        yield
    finally:
        cluster.take_settings(before)
        cluster.shell("login", f"groupdel {STAFF}; true")


@pytest.fixture(scope="module", params=NAMES)
def person(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Account]:
    """Somebody with such a name."""
    found = Account(cluster, request.param, 7300, secrets.token_urlsafe(12))
    found.remove()
    try:
        found.add()
        yield found
    finally:
        found.remove()


@pytest.fixture(scope="module")
def api(person: Account) -> Iterator[Api]:
    """The API as this person; sessions end before the account does."""
    found = person.log_in()
    yield found
    found.clean()


@pytest.mark.timeout(900)
def test_a_session_of_somebody_with_such_a_name(api: Api, person: Account) -> None:
    # Slurm's limits, and with them its users, are read every few seconds.
    ask = {"environment": "python"} | SMALL

    def known() -> bool:
        return api("POST", "/sessions/estimate", json=ask).status_code == 200

    wait_for("Slurm's limits", known, 120, 2)
    session = api.wait_state(api.launch(**SMALL)["id"], "RUNNING", seconds=SECONDS)
    queue = person.cluster.run("ctl", "squeue", "--noheader", "-o%u", f"--jobs={session['job_id']}")
    assert queue.split() == [person.name]
    terminal = api.open(session["id"], "terminal")
    assert terminal.get("/").status_code == 200
    assert {one["owner"] for one in api.list()} == {person.name}


@pytest.mark.timeout(900)
def test_their_files(api: Api, person: Account) -> None:
    url = f"{person.cluster.url}/data/files/home/words.txt"
    sent = api.http.put(url, data=b"words", timeout=60)
    assert sent.status_code in (200, 201, 204), sent.text
    owner = person.cluster.run("login", "stat", "--format=%U", f"{person.home}/words.txt")
    assert owner.strip() == person.name


@pytest.mark.timeout(900)
def test_an_administrator_by_group(api: Api, person: Account) -> None:
    """From the next log-in on, in every process; no more a minute after the group is left."""
    assert {api("GET", "/journal").status_code for _ in range(8)} == {404}
    person.cluster.run("login", "usermod", "--append", "--groups", STAFF, person.name)
    again = person.log_in()
    assert {again("GET", "/journal").status_code for _ in range(16)} == {200}
    person.cluster.run("login", "gpasswd", "--delete", person.name, STAFF)

    def is_none() -> bool:
        return {again("GET", "/journal").status_code for _ in range(8)} == {404}

    if person.name == NAMES[0]:  # the minute is the same for every name
        wait_for("no administrator any more", is_none, SECONDS, 3)


@pytest.mark.timeout(900)
def test_the_first_login_node_is_down(make_api: MakeApi, cluster: Cluster) -> None:
    alice = make_api("alice")
    try:
        alice.wait_state(alice.launch(**SMALL)["id"], "RUNNING", seconds=SECONDS)
    finally:
        alice.clean()
    assert f"login node {AWAY} does not answer" in cluster.ctl("logs", "portal")
    words = ("exec", "portal", "--", "runuser", "-u", "slipway", "--", "slipway", "check")
    said = cluster.attempt(*words, seconds=300).stdout
    assert [line for line in said.splitlines() if AWAY in line and not line.startswith("ok ")], said


def test_who_may_not_come_in(cluster: Cluster) -> None:
    """Characters beyond the site's rule, and options of ssh's."""
    for name in ("-oProxyCommand=id", "j doe", "../root", "j.doe@example.org@x;id", "ann\n", "ä"):
        answer = Api(cluster, "")("POST", "/tokens", json={"username": name, "password": "x"})
        assert answer.status_code in (401, 422, 429), name
