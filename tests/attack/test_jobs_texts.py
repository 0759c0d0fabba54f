"""What users write into their jobs: it is text, and forges neither records nor pages."""

from __future__ import annotations

import csv
import html
import io
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.batch_jobs import cancel, sbatch, wait_for_job
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

FORGED = "4000000000"
RECORD = "alice\x1fRUNNING\x1fNone\x1fn1\x1f1\x1f2\x1f3\x1f0:0\x1fmain\x1f5\x1fresearch\x1fnormal"
NAMES = {
    "html": "<img src=x onerror=alert(1)>\"'><script>m4711</script>",
    "lines": f"a\n{FORGED}|alice|RUNNING|None|n1\n{FORGED}\x1f{RECORD}\x1f\x1f\x1f\x1f\n",
    "bidi": "a\u202egnp.exe\u2066\u200f\u2028b",
    "ansi": "\x1b[2J\x1b]0;x\x07 a\rb\tc",
    "formula": '=HYPERLINK("http://evil.example.org","x")',
    "long": "n" * 1000,
    "percent": "%x%j%u%%",
    "separator": "<0123456789abcdef>" * 16,
}
BYTES = r"$'\xff\xfe\xc3(\x80'"
"""A name that is not UTF-8, as bash writes it."""
DIRECTORY = f"/home/bob/d\u202e<b>\n{FORGED}|alice|RUNNING"


@pytest.fixture(scope="module")
def his(make_api: object, cluster: Cluster) -> Iterator[dict[str, Json]]:
    """Bob's jobs on hold by kind, as the portal shows them."""
    api: Api = make_api("bob")  # type: ignore[operator]
    cluster.run("login", "mkdir", "-p", DIRECTORY, user="bob")
    ids = {
        kind: sbatch(cluster, "bob", "true", "--hold", f"--job-name={name}", f"--chdir={DIRECTORY}")
        for kind, name in NAMES.items()
    }
    script = f"cd; sbatch --parsable --hold --mem=100 --wrap true --job-name={BYTES}"
    ids["bytes"] = cluster.run("login", "bash", "-c", script, user="bob").strip()
    paths = f"--output=/home/bob/{'%x' * 1300}", f"--error=/home/bob/{'%j' * 1300}"
    ids["paths"] = sbatch(cluster, "bob", "true", "--hold", f"--job-name={'p' * 1000}", *paths)

    def named() -> dict[str, Json] | None:
        found = {kind: api.ask("GET", f"/jobs/{number}") for kind, number in ids.items()}
        return found if all(job["directory"] for job in found.values()) else None

    wait_for("the names", lambda: api("GET", f"/jobs/{ids['paths']}").status_code == 200)
    yield wait_for("the names", named)
    cancel(cluster, "bob")
    cluster.run("login", "rm", "-rf", "--", DIRECTORY, user="bob")


def test_each_job_is_bobs_with_a_name_of_its_own(his: dict[str, Json]) -> None:
    for kind, job in his.items():
        assert (job["owner"], job["slurm_state"]) == ("bob", "PENDING"), kind
        assert job["name"].isprintable(), kind
        assert 0 < len(job["name"]) <= 200, kind
    assert his["html"]["name"] == NAMES["html"]
    assert his["lines"]["name"].startswith(
        f"a\ufffd{FORGED}|alice|RUNNING|None|n1\ufffd{FORGED}\ufffdalice"
    )
    assert his["bidi"]["name"] == "a\ufffdgnp.exe\ufffd\ufffd\ufffdb"
    assert his["html"]["directory"] == DIRECTORY
    assert his["percent"]["stdout"] == f"{DIRECTORY}/slurm-{his['percent']['id']}.out"


def test_names_forge_and_hide_no_jobs(
    his: dict[str, Json], alice: Api, admin: Api, cluster: Cluster
) -> None:
    mine = sbatch(cluster, "alice", "true", "--hold", "--job-name=hers", "--output=/dev/null")
    assert wait_for_job(alice, mine, "PENDING")["name"] == "hers"
    query = {"state": "pending", "limit": 500, "sort": "-submitted"}
    listed = {job["id"]: job["owner"] for job in admin.ask("GET", "/jobs", params=query)["jobs"]}
    lines = cluster.run("login", "squeue", "-h", "--states=pending", "--format=%i %u").split()
    assert listed == dict(zip(lines[::2], lines[1::2], strict=True))
    assert alice("GET", f"/jobs/{FORGED}").status_code == 404
    cluster.run("login", "scancel", mine, user="alice")


def test_paths_of_four_kilobytes_are_not_multiplied(his: dict[str, Json]) -> None:
    """With a name of 1 KB they were 1.3 MB each, in the worker, for every job of thousands."""
    assert [len(his["paths"][stream]) for stream in ("stdout", "stderr")] == [0, 0]


@pytest.mark.parametrize("user", ["bob", "admin"])
def test_pages_show_them_as_text(his: dict[str, Json], user: str, logged_in: LoggedIn) -> None:
    browser = logged_in(user)
    ids = [job["id"] for job in his.values()]
    asked = "&".join(f"ids={number}" for number in ids)
    pages = [f"/jobs/{number}{part}" for number in ids for part in ("", "/now", "/output")]
    lists = ["/jobs?state=pending", "/jobs/rows?state=pending", f"/jobs/act/cancel?{asked}"]
    for page in (*pages, *lists):
        text = browser.get(page).text
        assert "<img src=x" not in text, page
        assert "<script>m4711" not in text, page
        assert "<b>" not in text, page
        assert not re.search("[\u202e\u2066\u200f\x1b\x07\x1f]", html.unescape(text)), page


def test_a_cancelled_jobs_name_is_no_formula_in_the_journals_file(
    his: dict[str, Json], admin: Api, logged_in: LoggedIn
) -> None:
    ids = [his[kind]["id"] for kind in ("formula", "lines")]
    done = admin.ask("POST", "/jobs/cancel", 202, json={"ids": ids})["outcomes"]
    assert [one["done"] for one in done] == [True, True]
    text = logged_in("admin").get("/admin/journal.csv?action=job.cancel").text
    lines = csv.DictReader(io.StringIO(text))
    rows = [row for row in lines if row["target"] in ids]
    details = {row["target"]: row["detail"] for row in rows}
    assert details[ids[0]] == f"'{NAMES['formula']} of bob"
    assert details[ids[1]].isprintable()
    assert not [
        cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))
    ]


SPY = """
import glob, sys, time
seen, until = set(), time.monotonic() + float(sys.argv[1])
kinds = b"State,", b"WorkDir"
while time.monotonic() < until and not all(any(kind in line for line in seen) for kind in kinds):
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                line = file.read()
        except OSError:
            continue
        if b"--delimiter=" in line and b"glob" not in line:
            seen.add(line)
for line in seen:
    print(line.replace(b"\\0", b" ").decode(errors="backslashreplace"))
"""


def test_what_others_can_read_of_a_query_forges_no_record(alice: Api, cluster: Cluster) -> None:
    """sacct's delimiter is an argument: whoever read it wrote it into a job's name in time."""
    spy = f"python3 -c {shlex.quote(SPY)} 40"
    with ThreadPoolExecutor() as pool:
        found = pool.submit(cluster.run, "login", "sh", "-c", spy, user="bob")
        while not found.done():  # it watches by the second job at the latest
            wait_for_job(alice, sbatch(cluster, "alice", "true"), "COMPLETED")
    seen = found.result().splitlines()
    told = [line for line in seen if re.search("--delimiter=<[0-9a-f]{16}>", line)]
    facts = [line for line in seen if "State" in line]
    assert told, seen
    assert facts, seen
    assert not [line for line in told if line in facts]
    assert not [line for line in facts if re.search("Name|Dir|Std|Comment|SubmitLine", line)]
