"""The composer: what a request says is never more than its sender could do on the login node."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.client import TIMEOUT, Api, Json
from tests.support.cluster import Cluster

OK = "#!/bin/sh\ntrue\n"
PWNED = "/tmp/m4711-pwned"
TOUCH = f"$(touch {PWNED})`touch {PWNED}`;touch {PWNED}|touch {PWNED}&"
NAME = "m4711shared"
EVIL = "</textarea></script><script>alert(4711)</script>"


@pytest.fixture(scope="module", autouse=True)
def _tidy(make_api: Any, cluster: Cluster) -> Iterator[None]:
    for machine in ("login", "portal", "n1"):
        cluster.run(machine, "rm", "-f", PWNED)
    yield
    for user in ("alice", "bob"):
        make_api(user)("DELETE", f"/job-templates/{NAME}")
        cluster.run("login", "scancel", f"--user={user}", user=user)


def jobs_of(cluster: Cluster, *users: str) -> set[str]:
    """All jobs of these users that Slurm has; it forgets ended ones meanwhile."""
    words = ["squeue", "--noheader", "--states=all", f"--user={','.join(users)}", "--format=%i"]
    return set(cluster.run("login", *words).split())


REFUSED: list[tuple[Json, str]] = [
    ({"options": ["--wrap=id"]}, "options"),
    ({"options": ["--wra", "id"]}, "options"),
    ({"options": ["--parsable"]}, "options"),
    ({"options": ["-W"]}, "options"),
    ({"options": ["-HW"]}, "options"),
    ({"options": ["--help"]}, "options"),
    ({"options": ["/bin/sh"]}, "options"),
    ({"options": ["--", "id"]}, "options"),
    ({"options": [":", "--uid=0"]}, "options"),
    ({"options": ["--job-name=a\n#SBATCH --uid=0"]}, "options"),
    ({"options": ["--job-name=a\0b"]}, "options"),
    ({"options": ["-n"] * 101}, "options"),
    ({"name": "a\n#SBATCH --wrap=id"}, "name"),
    ({"name": "a\u202eb"}, "name"),
    ({"image": "-x"}, "image"),
    ({"image": "python\n--uid=0"}, "image"),
    ({"image": "http://evil.example.org/x.sif"}, "image"),
    ({"array": "0-1 --uid=0"}, "array"),
    ({"resource_group": "main --uid=0"}, "resource_group"),
    ({"directory": "relative"}, "directory"),
    ({"directory": "~alice"}, "directory"),
    ({"mounts": [{"folder": "../../etc", "read_only": False}]}, "mounts.0"),
    ({"uid": 0}, "uid"),
    ({"script": "#!/bin/sh\n#SBATCH --wrap=id\n"}, "script"),
    ({"script": "#!/bin/sh\n#SBATCH -W\n"}, "script"),
    ({"script": "#!/bin/sh\n\0"}, "script"),
    ({"script": "#!/bin/sh\n" + "#" * 600_000}, "script"),
    ({"path": "~/x"}, "path"),
]


@pytest.mark.parametrize("test_only", [True, False])
def test_what_is_no_request_is_refused(test_only: bool, bob: Api, cluster: Cluster) -> None:
    before = jobs_of(cluster, "bob")
    for changes, field in REFUSED:
        answer = bob("POST", "/jobs", json={"script": OK, "test_only": test_only, **changes})
        assert answer.status_code in (413, 422), (changes, answer.text[:300])
        if answer.status_code == 422:
            assert field in [error["field"] for error in answer.json()["errors"]], answer.text[:300]
    assert jobs_of(cluster, "bob") <= before


# Slurm refuses these itself: `slipway sbatch` runs as bob.
BY_SLURM = [["--uid=0"], ["--uid=alice"], ["--gid=0"], ["--account=root"], ["--qos=root"],
            ["--reservation=x"], ["--partition=x"]]  # fmt: skip


@pytest.mark.parametrize("options", BY_SLURM, ids=str)
def test_nobody_becomes_somebody_else(options: list[str], bob: Api, cluster: Cluster) -> None:
    before = jobs_of(cluster, "bob", "alice", "root")
    script = f"#!/bin/sh\n#SBATCH {options[0]}\n"
    for body in ({"script": OK, "options": options}, {"script": script}):
        answer = bob("POST", "/jobs", json=body)
        assert answer.status_code == 422, answer.text
    assert jobs_of(cluster, "bob", "alice", "root") <= before


@pytest.mark.parametrize(
    "changes",
    [
        {"name": TOUCH},
        {"directory": f"~/{TOUCH}"},
        {"directory": f"/home/bob/{TOUCH}"},
        {"script": None, "path": f"~/{TOUCH}/x"},
        {"script": None, "path": f"/{TOUCH}"},
        {"image": f"./{TOUCH}.sif"},
        {"image": f"docker://{TOUCH}"},
        {"options": [f"--comment={TOUCH}", f"--begin={TOUCH}", f"-D{TOUCH}"]},
        {"options": [f"--env-file={TOUCH}", f"--mount={TOUCH}", "--image=python"]},
        {"script": f"#!/bin/sh\n#SLIPWAY --image='{TOUCH}.sif'\n"},
        {"script": f"#!/bin/sh\n#SBATCH --comment='{TOUCH}' --chdir='/tmp/{TOUCH}'\n"},
    ],
    ids=str,
)
def test_no_word_of_a_request_is_run_as_a_command(
    changes: Json, bob: Api, cluster: Cluster
) -> None:
    body = {name: x for name, x in {"script": OK, **changes}.items() if x is not None}
    answer = bob("POST", "/jobs", json={**body, "test_only": True})
    assert answer.status_code in (200, 422), answer.text
    for machine in ("login", "portal"):
        assert cluster.attempt("exec", machine, "--", "test", "-e", PWNED).returncode != 0


PATHS = {
    "/etc/shadow": "you may not read this file",
    "/home/alice/secret.sh": "there is no such file, or you may not look into its folder",
    "/home/bob/link.sh": "there is no such file, or you may not look into its folder",
    "/home/bob/fifo": "this is not a file",
    "/dev/zero": "this is not a file",
    "/etc": "this is not a file",
    "/proc/1/mem": "you may not read this file",
    "/home/bob/nowhere": "there is no such file",
    "/home/bob/huge": "",
}


def test_files_are_read_as_their_reader(bob: Api, logged_in: LoggedIn, cluster: Cluster) -> None:
    make = "cd; rm -f fifo link.sh huge; mkfifo fifo; ln -s /home/alice/secret.sh link.sh; "
    cluster.shell("login", f"{make} truncate -s 1T huge", user="bob")
    secret = "umask 077; printf '#!/bin/sh\\n# m4711secret\\n' > ~/secret.sh"
    cluster.shell("login", secret, user="alice")
    try:
        for path, words in PATHS.items():
            page = logged_in("bob").post("/jobs/new/script", {"path": path, "source": "file"})
            assert page.status_code == 422, path
            assert words in html.unescape(page.text).lower(), path
            assert "m4711secret" not in page.text
            answer = bob("POST", "/jobs", json={"path": path, "test_only": True})
            assert answer.status_code == 422, (path, answer.text)
    finally:
        cluster.shell("login", "cd; rm -f fifo link.sh huge", user="bob")
        cluster.shell("login", "rm -f ~/secret.sh", user="alice")


FORMS = [
    "/jobs/new", "/jobs/new/check", "/jobs/new/command", "/jobs/new/script", "/jobs/new/again",
    "/jobs/templates", f"/jobs/templates/{NAME}/rename", f"/jobs/templates/bob/{NAME}/delete",
    "/jobs/act/cancel", "/jobs/act/hold", "/jobs/act/release", "/jobs/act/requeue",
    "/jobs/1/extend",
]  # fmt: skip


def test_other_pages_cannot_send_her_forms(logged_in: LoggedIn, cluster: Cluster) -> None:
    her = logged_in("alice")
    before = jobs_of(cluster, "alice")
    fields = {"script": OK, "source": "editor", "ids": "1", "template": NAME, "path": "/etc/passwd"}
    for form in FORMS:
        address = cluster.url + form
        evil = {"Origin": "http://evil.example.org", "Referer": "http://evil.example.org/"}
        plain = her.http.post(address, fields, timeout=TIMEOUT)
        assert plain.status_code == 400, (form, plain.status_code)
        forged = her.post(form, fields, headers=evil)
        assert forged.status_code in (400, 403), (form, forged.status_code)
    token = her.http.post(f"{cluster.url}/api/v1/jobs", json={"script": OK}, timeout=TIMEOUT)
    assert token.status_code == 401
    assert jobs_of(cluster, "alice") <= before
    assert her.get(f"/jobs/new?template={NAME}").status_code == 404


def test_a_shared_template_is_text_to_others(
    bob: Api, alice: Api, logged_in: LoggedIn, cluster: Cluster
) -> None:
    """Bob shares a job with alice's account: she sees it all before it runs."""
    body: Json = {
        "script": f"#!/bin/sh\n# {EVIL}\n", "name": EVIL, "directory": f"/home/{EVIL}",
        "options": [f"--comment={EVIL}"], "shared": "account",
    }  # fmt: skip
    before = jobs_of(cluster, "alice")
    saved = bob.ask("PUT", f"/job-templates/{NAME}", 201, json=body)
    assert saved["account"] == "research"
    (listed,) = alice.ask("GET", "/job-templates")["templates"]
    assert (listed["owner"], listed["name"]) == ("bob", NAME)
    for page in (f"/jobs/new?template={NAME}&owner=bob", "/jobs/templates", "/jobs/new"):
        text = logged_in("alice").get(page).text
        assert "<script>alert(4711)" not in text, page
    page = html.unescape(logged_in("alice").get(f"/jobs/new?template={NAME}&owner=bob").text)
    assert page.count(EVIL) >= 4  # the script, the name, the folder, the options
    assert jobs_of(cluster, "alice") <= before
    assert alice("DELETE", f"/job-templates/{NAME}", params={"owner": "bob"}).status_code == 404
    her = logged_in("alice")
    assert her.post(f"/jobs/templates/bob/{NAME}/delete").status_code == 404
    bob.ask("PUT", f"/job-templates/{NAME}", json={**body, "shared": "nobody"})
    assert alice.ask("GET", "/job-templates")["templates"] == []
    assert her.get(f"/jobs/new?template={NAME}&owner=bob").status_code == 404


def test_nobody_shares_more_widely_than_he_may(bob: Api) -> None:
    body: Json = {"script": OK}
    before = bob.ask("GET", "/job-templates")
    for changes, field in (
        ({"shared": "site"}, "shared"),
        ({"shared": "account", "account": "root"}, "account"),
        ({"shared": "all"}, "shared"),
        ({"owner": "alice"}, "owner"),
    ):
        answer = bob("PUT", f"/job-templates/{NAME}2", json=body | changes)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == field
    for name in ("a%2Fb", "..", "%3Cimg%3E", "a%0Ab", "x" * 100, "-a"):
        answer = bob("PUT", f"/job-templates/{name}", json=body)
        assert answer.status_code in (404, 405, 422), (name, answer.text)
    assert bob.ask("GET", "/job-templates") == before
