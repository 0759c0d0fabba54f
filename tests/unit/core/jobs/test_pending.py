"""Why jobs wait, in words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTexts
from portal.core.jobs.pending import explain_pending
from portal.core.session.pending_reasons import JOBS, Reason, explain_reason
from tests.support.paths import RECORDED

REASONS = json.loads((RECORDED / "pending_reasons.json").read_text(encoding="utf-8"))


def waits(
    reason: str | None, dependency: str = "", tasks: str = "", start: datetime | None = None
) -> Reason:
    """Why a job with this reason waits."""
    report = JobReport("1", "alice", JobState.PENDING, reason=reason, start=start)
    texts = JobTexts(dependency=dependency)
    found = explain_pending(Job(report, array_id="1" if tasks else "", tasks=tasks, texts=texts))
    assert found is not None
    return found


def test_all_reasons_of_slurm_are_here() -> None:
    assert len(REASONS) == 223


def test_every_reason_is_explained_in_words_for_jobs() -> None:
    reasons = {code: waits(code) for code in REASONS}
    assert [code for code, reason in reasons.items() if reason.code != code] == []
    texts = {code: reason.text for code, reason in reasons.items()}
    assert [code for code, text in texts.items() if not text.endswith(".")] == []
    assert [code for code, text in texts.items() if text.startswith("Slurm says")] == []
    of_sessions = re.compile("session|launch|resource group|[{}]", re.IGNORECASE)
    assert [r for r in reasons.values() if of_sessions.search(f"{r.text} {r.advice}")] == []


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("JobHeldUser", "Release it, and it takes its turn."),
        ("PartitionTimeLimit", "Cancel it and submit it again with a shorter time limit."),
        ("QOSMaxCpuPerUserLimit", "Cancel one of your jobs, or submit it again with less."),
        ("AccountNotAllowed", "Cancel it and submit it again in another partition."),
    ],
)
def test_the_advice_is_for_jobs(code: str, advice: str) -> None:
    assert waits(code).advice == advice


def test_sessions_keep_their_words() -> None:
    assert explain_reason("PartitionNodeLimit").advice == "End it and launch it again with less."
    assert explain_reason("PartitionDown", JOBS).text == "This partition is closed for new jobs."


@pytest.mark.parametrize(
    ("dependency", "text"),
    [
        ("afterok:4(unfulfilled)", "It waits for job 4 to end without an error."),
        (
            "afterok:25(unfulfilled),afterany:24(unfulfilled)",
            "It waits for job 25 to end without an error and for job 24 to end.",
        ),
        (
            "afterany:1(unfulfilled)?afterany:2(unfulfilled)",
            "It waits for jobs 1 and 2 to end.",
        ),
        (
            "afterok:1(unfulfilled)?afternotok:2_*(unfulfilled)",
            "It waits for job 1 to end without an error or for job 2_* to end with an error.",
        ),
        (
            ",".join(f"after:{n}(unfulfilled)" for n in range(1, 8)),
            "It waits for jobs 1, 2, 3, 4, 5 and 2 more to start.",
        ),
        ("singleton(unfulfilled)", "It waits for your other jobs of this name to end."),
        ("", "It waits for another job to end."),
        ("<script>", "It waits for another job to end."),
    ],
)
def test_dependencies(dependency: str, text: str) -> None:
    assert waits("Dependency", dependency).text == text


def test_tasks_at_once_and_a_later_start() -> None:
    assert waits("JobArrayTaskLimit", tasks="2-5%2").text == (
        "At most 2 tasks of this array may run at once."
    )
    assert waits("JobArrayTaskLimit", tasks="2-5%1").text == (
        "At most one task of this array may run at once."
    )
    start = datetime(2026, 11, 24, 8, 5, tzinfo=UTC)  # pages show it beside the reason
    assert waits("BeginTime", start=start).text == "It is planned for later."


def test_only_jobs_that_wait_have_a_reason() -> None:
    assert explain_pending(Job(JobReport("1", "a", JobState.RUNNING, reason="None"))) is None
    assert explain_pending(Job(JobReport("1", "a", JobState.COMPLETED))) is None
    paused = explain_pending(Job(JobReport("1", "a", JobState.SUSPENDED)))
    assert paused is not None
    assert paused.text == "It is paused, and nothing in it moves."


def test_the_jobs_account_and_qos_are_named() -> None:
    report = JobReport(
        "1", "a", JobState.PENDING, "AssocGrpCPUMinutesLimit", account="crystals", qos="long"
    )
    found = explain_pending(Job(report))
    assert found is not None
    assert found.text == (
        "Your account crystals, or one above it, has used up its budget of CPU cores over time."
    )
    found = explain_pending(Job(replace(report, reason="QOSMaxJobsPerUserLimit")))
    assert found is not None
    assert found.text == "You have reached your limit of running jobs at once with QOS long."
