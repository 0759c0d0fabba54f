"""Whole records of accounting: real output, and attempts to forge them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from portal.adapters.slurm.accounting import (
    RecordQuery,
    facts_argv,
    facts_parse,
    texts_argv,
    texts_parse,
)
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job, JobTexts
from portal.core.jobs.tasks import count_tasks
from tests.record import HOSTILE, SEPARATOR
from tests.support.paths import RECORDED
from tests.support.recordings import VERSIONS, recorded


def found(version: str, *, output: bool = True) -> tuple[dict[str, str], dict[str, Job]]:
    """The numbers of the recorded jobs by kind, and their records."""
    roles = json.loads((RECORDED / version / "jobs-others.json").read_text(encoding="utf-8"))
    numbers, jobs = facts_parse(recorded(version, "jobs-facts"))
    text = recorded(version, "jobs-told" if output else "jobs-told-short")
    texts = texts_parse(text, SEPARATOR, numbers, output=output)
    assert texts is not None
    return roles, {job.id: replace(job, texts=texts[job.id]) for job in jobs}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("output", [True, False])
def test_records(version: str, output: bool) -> None:
    roles, jobs = found(version, output=output)
    array = jobs[roles["array"]]
    assert array.shown_id == f"{array.id}_[2-5%2]"
    assert (array.report.state, array.report.start) == (JobState.CANCELLED, None)
    ran = [job for job in jobs.values() if job.array_id == array.id and job.id != array.id]
    assert sorted(job.tasks for job in ran) == ["0", "1"]
    assert all(job.report.start and job.report.nodes for job in ran)
    report = jobs[roles["errors"]].report
    assert (report.user, report.cancelled_by, report.time_limit) == ("bob", "1002", 60)
    assert (report.cpus, report.memory_mb, report.qos) == (1, 100, "normal")
    assert jobs[roles["hostile"]].texts.name == HOSTILE
    assert jobs[roles["hostile"]].texts.directory == "/home/bob"
    expected = "/tmp/errors-%4j.txt" if output else ""
    assert jobs[roles["errors"]].texts.stderr == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_span_of_time_has_what_ended_in_it_and_nothing_else(version: str) -> None:
    numbers = json.loads((RECORDED / version / "use-jobs.json").read_text(encoding="utf-8"))
    jobs = {job.id: job for job in facts_parse(recorded(version, "use-ended"))[1]}
    assert all(job.report.state.over and job.report.end for job in jobs.values())
    assert set(numbers.values()) - jobs.keys() == {numbers["waits"]}
    assert jobs[numbers["steps"]].report.nodes == ("n1", "n2")
    assert jobs[numbers["parts-2"]].shown_id == f"{numbers['parts']}+1"
    never = jobs[numbers["long"]]
    assert (never.report.start, count_tasks(never.tasks)) == (None, 32)


def test_what_cannot_be_read_is_left_out() -> None:
    good = ["7", "bob", "FAILED", "n1", "1", "2", "3", "3:9", "7", "main", "a", "q", "", "", "5",
            "1"]  # fmt: skip
    bad = [[*good[:2], "DANCING", *good[3:]], ["x", *good[1:]], [good[0], "", *good[2:]], good[:9]]
    text = "".join("\x1f".join(words) + "\n" for words in (*bad, good))
    numbers, (job,) = facts_parse(text)
    assert numbers == ["7", "x", "7", "7", "7"]
    assert (job.id, job.report.exit_code, job.signal) == ("7", 3, 9)


def told(*records: tuple[str, ...]) -> str:
    """What sacct prints of jobs' texts, with the delimiter <s>."""
    return "".join("<s>".join([*record, "\n"]) for record in records)


def test_a_name_with_the_delimiter_changes_no_job() -> None:
    """Users of the login node can read sacct's arguments while it runs, and rename a job."""
    hers = ("8", "hers", "/home/alice")
    honest = told(("7", "his", "/home/bob"), hers)
    assert texts_parse(honest, "<s>", ["7", "8"], output=False) == {
        "7": JobTexts("his", "/home/bob"),
        "8": JobTexts("hers", "/home/alice"),
    }
    forged = [
        told(("7", "his<s>/<s>\n8<s>mine now", "/home/bob"), hers),  # a record of hers
        told(("7", "his<s>", "/home/bob"), hers),  # all that follows is shifted
        told(("7", "his", "/home/bob<s>\n8<s>a<s>b"), hers),
    ]
    for text in forged:
        assert texts_parse(text, "<s>", ["7", "8"], output=False) is None
    assert texts_parse(honest, "<s>", ["8", "7"], output=False) is None
    assert texts_parse(honest, "<s>", ["7"], output=False) is None


def test_a_span_of_time_is_asked_in_utc_for_all_users() -> None:
    query = RecordQuery(
        span=(datetime(2026, 11, 22, tzinfo=UTC), datetime(2026, 11, 23, 6, tzinfo=UTC))
    )
    for argv in (facts_argv(query), texts_argv(query, "<s>")):
        assert argv[-4:] == [
            "--allusers", "--state=BF,CA,CD,DL,F,NF,OOM,PR,TO",
            "--starttime=2026-11-22T00:00:00", "--endtime=2026-11-23T06:00:00"
        ]  # fmt: skip
    assert "StdOut" in " ".join(texts_argv(query, "<s>"))
    assert "StdOut" not in " ".join(texts_argv(query, "<s>", output=False))


def test_facts_have_no_text_of_users() -> None:
    argv = " ".join(facts_argv(RecordQuery(job_ids=("7",))))
    assert not [word for word in ("Name", "Dir", "Std", "Comment", "Line") if word in argv]
