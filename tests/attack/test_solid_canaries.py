"""Secrets in use leave no trace that bob, a dump or a log could show.

Row "Canaries" of what was attacked and found solid;
test_neighbour.py::test_the_runner_token_is_exposed_nowhere does the same for the runner's token,
with root's permissions.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.attack.conftest import LoggedIn
from tests.slurm.conftest import MakeApi
from tests.support.apps import Kernel
from tests.support.client import Api, Json, Visitor, login
from tests.support.cluster import Cluster
from tests.support.portal_settings import SETTINGS

Secrets = dict[str, str]
Found = tuple[Secrets, Json]


@pytest.fixture(scope="module")
def secrets(make_api: MakeApi, cluster: Cluster, logged_in: LoggedIn) -> Iterator[Found]:
    """In use at once: a variable, a ticket, an app's cookie, a login, a token and a password."""
    api: Api = make_api("alice")
    variable = f"canary-{uuid.uuid4().hex}"
    session = api.running(env={"SECRET": variable})
    link = api.ask("POST", f"/sessions/{session['id']}/apps/jupyterlab")["url"]
    visitor = Visitor(link)
    visitor.enter()
    kernel = Kernel(visitor)
    assert variable in kernel.run("import os; print(os.environ['SECRET'])").text
    browser = logged_in("alice")
    login = [str(c.value) for c in browser.http.cookies if c.name in ("slipway", "__Host-slipway")]
    yield (
        {
            "variable": variable,
            "ticket": parse_qs(urlsplit(link).query)["ticket"][0],
            "cookie": visitor.cookie,
            "login": login[0],
            "token": str(api.http.headers["Authorization"]).split()[1],
            "password": cluster.password("alice"),
        },
        session,
    )
    kernel.close()
    api.clean()


NAMES = ("variable", "ticket", "cookie", "login", "token", "password")
SEEN_BY_BOB = {
    "processes": "ps auxwwe; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ",
    "jobs": "scontrol show job -dd {job}; scontrol show step {job}; squeue --all --json",
    "accounting": "sacct --allusers --json --jobs={job}; sacct -a -l -j {job}; "
    "sacct -a --env-vars -j {job}; sacct -a -B -j {job}",
    "spool": "cat /var/spool/slurmd/job*/* /var/spool/slurmd/* /tmp/* /var/tmp/* /dev/shm/* "
    "/run/slipway/* /run/slipway/*/*",
    "homes": "cat /home/alice/.slipway/logs/* /home/alice/.slipway/*/* /home/alice/.bash_history",
    "sockets": "ss -xpa; cat /proc/net/unix",
}


@pytest.mark.parametrize("machine", ["login", "node"])
@pytest.mark.parametrize("place", SEEN_BY_BOB)
def test_bob_sees_no_secret(cluster: Cluster, secrets: Found, place: str, machine: str) -> None:
    known, session = secrets
    where = session["node"] if machine == "node" else "login"
    command = SEEN_BY_BOB[place].format(job=session["job_id"])
    argv = ["exec", "--user", "bob", where, "--", "sh", "-c", f"({command}) 2>&1 | tr -d '\\000'"]
    output = cluster.attempt(*argv).stdout
    assert [name for name in NAMES if known[name] in output] == []
    if place == "jobs":
        assert session["job_id"] in output, "nothing was queried"


def test_no_process_has_a_secret_in_its_arguments(cluster: Cluster, secrets: Found) -> None:
    """Arguments are public on every machine; even root finds no secret there."""
    known, session = secrets
    for machine in ("login", "ctl", "portal", session["node"]):
        output = cluster.shell(machine, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\000' ' '")
        assert "supervisord" in output
        assert [name for name in NAMES if known[name] in output] == [], machine


@pytest.mark.parametrize("service", ["ctl", "login", "n1", "n2", "portal"])
def test_no_daemon_logs_a_secret(cluster: Cluster, secrets: Found, service: str) -> None:
    output = cluster.ctl("logs", service) + cluster.shell(
        service, "cat /var/log/slurm/* /var/log/*.log 2>/dev/null; true"
    )
    assert [name for name in NAMES if secrets[0][name] in output] == []


def test_the_accounting_database_has_no_secret(cluster: Cluster, secrets: Found) -> None:
    dump = cluster.shell("ctl", "mariadb-dump --skip-extended-insert slurm_accounting")
    assert secrets[1]["job_id"] in dump
    assert [name for name in NAMES if secrets[0][name] in dump] == []


def test_the_portals_database_has_no_credentials(cluster: Cluster, secrets: Found) -> None:
    """Except the values of variables, which are needed to repeat lost submissions."""
    known = secrets[0]
    read = "cat /var/lib/slipway/slipway.db* | tr -cd '[:print:]\\n'"
    output = cluster.shell("portal", read)
    assert secrets[1]["id"] in output
    assert [name for name in NAMES if name != "variable" and known[name] in output] == []


def test_the_sessions_own_log_has_no_secret(make_api: MakeApi, secrets: Found) -> None:
    known, session = secrets
    log = make_api("alice").ask("GET", f"/sessions/{session['id']}/log")["log"]
    assert log
    assert [name for name in NAMES if known[name] in log] == []


@pytest.fixture
def all_is_logged(cluster: Cluster) -> Iterator[None]:
    """The portal writes JSON, with all that it ever writes; afterwards as before."""
    before = cluster.run("portal", "cat", SETTINGS)
    log = '\n[log]\nformat = "json"\nlevel = "debug"\naccess = true\n'
    try:
        cluster.take_settings(before + log)
        yield
    finally:
        cluster.take_settings(before)


@pytest.mark.timeout(600)
def test_no_secret_is_logged_as_json_with_all_details(
    cluster: Cluster,
    secrets: Found,
    all_is_logged: None,
    make_api: MakeApi,
    logged_in: LoggedIn,
) -> None:
    known, session = secrets
    token = login(cluster, "alice")
    query = f"token={known['token']}&password={known['password']}"
    assert make_api("alice")("GET", f"/sessions/{session['id']}?{query}").status_code == 200
    link = make_api("alice").ask("POST", f"/sessions/{session['id']}/apps/jupyterlab")["url"]
    ticket = parse_qs(urlsplit(link).query)["ticket"][0]
    visitor = Visitor(link)
    visitor.enter()
    assert logged_in("alice").get(f"/sessions?{query}").status_code == 200
    assert logged_in("alice").get(f"/nowhere/{session['id']}?{query}").status_code == 404
    wrong = {"username": "alice", "password": f"{known['password']}-mistyped"}
    assert Api(cluster, "")("POST", "/tokens", json=wrong).status_code in (401, 429)
    output = cluster.ctl("logs", "portal")
    path = f"GET /api/v1/sessions/{session['id']} 200"
    asked = [line.partition(" | ")[2] for line in output.splitlines() if path in line]
    assert json.loads(asked[-1])["user"] == "alice", "the log has these requests"
    assert f"GET /nowhere/{session['id']} 404" in output
    new = {"token": token, "ticket": ticket, "cookie": visitor.cookie}
    seen = [name for found in (known, new) for name, value in found.items() if value in output]
    assert seen == []
