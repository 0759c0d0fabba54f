"""Output files of jobs, wherever their owners like: read as the owner, bounded, as plain text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.batch_jobs import cancel, sbatch, wait_for_job
from tests.support.client import Api, Json
from tests.support.cluster import Cluster
from tests.support.hostile_shells import sender

SECRET = "m4711 is nobody else's"
FOLDER = "/home/bob/outputs"
EVIL = "<script>alert(1)</script>\x1b]0;x\x07\u202e\0\x1f"
MIB = 1 << 20

# What is at the path, how it is made there, and what the answer says.
PLACES = {
    "hers": ("/home/alice/secret.txt", ":", "cannot be read by bob"),
    "link": (f"{FOLDER}/link", "ln -s /home/alice/secret.txt {path}", "cannot be read by bob"),
    "admins": (f"{FOLDER}/admins", "ln -s /home/admin/secret.txt {path}", "cannot be read by bob"),
    "shadow": ("/etc/shadow", ":", "cannot be read by bob"),
    "key": (f"{FOLDER}/key", "ln -s /etc/ssh/ssh_host_ed25519_key {path}", "cannot be read by bob"),
    "fifo": (f"{FOLDER}/fifo", "mkfifo {path}", "is a device or a pipe"),
    "zero": (f"{FOLDER}/zero", "ln -s /dev/zero {path}", "is a device or a pipe"),
    "tty": ("/dev/tty", ":", "is a device or a pipe"),
    "null": ("/dev/null", ":", "throws this output away"),
    "folder": ("/etc", ":", "is a folder"),
    "memory": ("/proc/1/mem", ":", "cannot be read by bob"),
    "environ": ("/proc/1/environ", ":", "cannot be read by bob"),
    "up": (f"{FOLDER}/../../alice/secret.txt", ":", "cannot be read by bob"),
    "dash": (f"{FOLDER}/-rf --help", "mkdir {path}", "is a folder"),
}
FILES = {
    "evil": "printf '%s' {evil} > {path}",
    "sparse": "truncate -s 1T {path}",
    "swapped": "echo mine > {path}",
    "grows": "touch {path}",
}


@pytest.fixture(scope="module")
def his(make_api: object, cluster: Cluster) -> Iterator[dict[str, str]]:
    """Numbers of bob's jobs on hold, by what is in place of their output."""
    api: Api = make_api("bob")  # type: ignore[operator]
    for user in ("alice", "admin"):
        script = f"umask 077; echo {SECRET!r} > ~/secret.txt"
        cluster.run("login", "sh", "-c", script, user=user)
    makes = [f"rm -rf {FOLDER}; mkdir {FOLDER}; cd {FOLDER}"]
    makes += [make.format(path=f"'{path}'") for path, make, _ in PLACES.values()]
    makes += [make.format(path=kind, evil='"$1"') for kind, make in FILES.items()]
    text = EVIL.replace("\0", "")
    cluster.run("login", "sh", "-c", "\n".join(makes), "sh", text, user="bob")
    paths = {kind: place[0] for kind, place in PLACES.items()}
    paths |= {kind: f"{FOLDER}/{kind}" for kind in FILES}
    ids = {
        kind: sbatch(cluster, "bob", "true", "--hold", f"--output={path}")
        for kind, path in paths.items()
    }
    for number in ids.values():
        wait_for_job(api, number, "PENDING")
    yield ids
    cancel(cluster, "bob")
    cluster.run("login", "rm", "-rf", FOLDER, user="bob")
    for user in ("alice", "admin"):
        cluster.run("login", "rm", "-f", f"/home/{user}/secret.txt")


@pytest.mark.parametrize("kind", PLACES)
def test_what_bob_could_not_read_himself_is_read_for_nobody(
    kind: str, his: dict[str, str], bob: Api, admin: Api
) -> None:
    for reader in (bob, admin):
        begun = time.monotonic()
        answer = reader("GET", f"/jobs/{his[kind]}/output")
        assert time.monotonic() - begun < 5
        assert answer.status_code == 409, answer.text[:500]
        assert PLACES[kind][2] in answer.json()["detail"]
        assert SECRET not in answer.text


def test_no_part_of_a_request_chooses_the_path(his: dict[str, str], bob: Api) -> None:
    job = f"/jobs/{his['swapped']}/output"
    for query in ({"path": "/etc/shadow"}, {"stream": "/etc/shadow"}, {"stream": "../x"},
                  {"offset": "-1"}, {"offset": str(2**63)}, {"offset": "1; id"}):  # fmt: skip
        assert bob("GET", job, params=query).status_code == 422, query
    assert bob.ask("GET", job, params={"offset": 2**63 - 1})["output"] in ("", "mine\n")
    for path in (f"{job}/../../../etc/passwd", f"{job}%2f..%2f..", f"{job}/text"):
        assert bob("GET", path).status_code in (404, 405)


def test_a_file_that_is_swapped_while_it_is_read(
    his: dict[str, str], bob: Api, cluster: Cluster
) -> None:
    """Between the check and the opening there may be a link, a FIFO or a device in its place."""
    swap = (
        "cd ~/outputs; end=$(($(date +%s) + 4)); mkfifo f; echo mine > m; ln -s /dev/zero z; "
        "ln -s /home/alice/secret.txt s; while [ $(date +%s) -lt $end ]; do "
        "for x in m f m z m s; do ln -f $x n; mv -f n swapped; done; done"
    )
    send = sender(bob, "GET", f"/jobs/{his['swapped']}/output")
    with ThreadPoolExecutor(2) as pool:
        swapping = pool.submit(cluster.run, "login", "sh", "-c", swap, user="bob")
        answers, slowest = [], 0.0
        while not swapping.done():
            begun = time.monotonic()
            answers.append(send())
            slowest = max(slowest, time.monotonic() - begun)
    assert len(answers) > 5
    assert slowest < 10
    assert {answer.status_code for answer in answers} <= {200, 409, 503}
    assert not [answer for answer in answers if SECRET in answer.text]
    assert max(len(answer.content) for answer in answers) < 7 * MIB  # NULs, escaped in JSON


def test_huge_files_are_read_in_pieces(his: dict[str, str], bob: Api, logged_in: LoggedIn) -> None:
    job = his["sparse"]
    piece = bob.ask("GET", f"/jobs/{job}/output", params={"offset": 2**39})
    assert piece["next_offset"] == 2**39 + MIB
    text = logged_in("bob").get(f"/jobs/{job}/output/text")
    assert (text.headers["X-Next-Offset"], len(text.content)) == (str(2**40), MIB // 2)
    load = f"/jobs/{job}/output/download"
    begun: list[requests.Response] = []
    try:
        for _ in range(30):  # two in each of the portal's processes
            begun.append(logged_in("bob").get(load, stream=True))
            if begun[-1].status_code != 200:
                break
        assert begun[-1].status_code == 429
        assert begun[0].headers["Content-Length"] == str(2**40)
        assert logged_in("alice").get("/jobs").status_code == 200
    finally:
        for answer in begun:
            answer.close()


def test_a_file_that_grows_for_ever_ends_at_what_it_had(
    his: dict[str, str], bob: Api, logged_in: LoggedIn, cluster: Cluster
) -> None:
    grow = "cd ~/outputs; timeout 6 yes 'm4711 again and again' | head -c 300M >> grows"
    with ThreadPoolExecutor(1) as pool:
        growing = pool.submit(cluster.run, "login", "sh", "-c", grow, user="bob")
        while int(bob.ask("GET", f"/jobs/{his['grows']}/output")["next_offset"]) < MIB:
            assert not growing.done()
        got = logged_in("bob").get(f"/jobs/{his['grows']}/output/text")
        assert len(got.content) <= MIB
        growing.result()


def test_what_it_contains_is_plain_text_everywhere(
    his: dict[str, str], bob: Api, logged_in: LoggedIn
) -> None:
    job = his["evil"]
    assert bob.ask("GET", f"/jobs/{job}/output")["output"] == EVIL.replace("\0", "")
    browser = logged_in("bob")
    answers = {part: browser.get(f"/jobs/{job}/output{part}") for part in ("/text", "/download")}
    for part, answer in answers.items():
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8", part
        assert answer.headers["X-Content-Type-Options"] == "nosniff", part
        assert answer.headers["Cache-Control"] == "no-store", part
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"] or (
            "script-src 'self'" in answer.headers["Content-Security-Policy"]
        ), part
        assert answer.content == EVIL.replace("\0", "").encode(), part
    disposition = answers["/download"].headers["Content-Disposition"]
    assert disposition == f'attachment; filename="job-{job}.out"'
    assert "<script>alert(1)" not in browser.get(f"/jobs/{job}/output").text


def test_an_administrator_reads_as_bob_and_bob_is_told(
    his: dict[str, str], admin: Api, bob: Api, logged_in: LoggedIn, alice: Api
) -> None:
    job = his["evil"]
    assert alice("GET", f"/jobs/{job}/output").status_code == 404
    for _ in range(3):
        admin.ask("GET", f"/jobs/{job}/output")
    lines = admin.ask("GET", "/journal", params={"action": "job.read"})["entries"]
    mine: list[Json] = [line for line in lines if line["target"] == job]
    assert [(line["who"], line["detail"]) for line in mine] == [
        ("admin", "the output of bob's job")
    ]
    assert "admin (an administrator) read" in logged_in("bob").get(f"/jobs/{job}").text
    bob.ask("GET", f"/jobs/{job}/output")
