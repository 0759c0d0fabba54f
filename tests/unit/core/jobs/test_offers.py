"""Which actions a job's row offers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.actions import JobAction
from portal.core.jobs.offers import offered
from tests.support.stored_jobs import job

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOLD, RELEASE, REQUEUE, CANCEL = (
    JobAction.HOLD, JobAction.RELEASE, JobAction.REQUEUE, JobAction.CANCEL
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "PENDING", "reason": "Priority"}, (HOLD, CANCEL)),
        ({"state": "PENDING", "reason": None}, (HOLD, CANCEL)),
        ({"state": "PENDING", "reason": "JobHeldUser"}, (RELEASE, CANCEL)),
        ({"state": "PENDING", "reason": "JobHeldAdmin"}, (CANCEL,)),
        ({"state": "CONFIGURING"}, (CANCEL,)),
        ({"state": "RUNNING"}, (REQUEUE, CANCEL)),
        ({"state": "SUSPENDED"}, (REQUEUE, CANCEL)),
        ({"state": "COMPLETED"}, ()),
        ({"state": "RUNNING", "session": "0" * 32}, ()),
        ({"state": "RUNNING", "gone": NOON}, ()),
    ],
)
def test_a_job_offers_what_its_state_permits(
    changes: dict[str, Any], expected: tuple[JobAction, ...]
) -> None:
    assert offered(job(1, NOON, **changes)) == expected


def test_an_array_offers_what_one_of_its_tasks_permits() -> None:
    head = job(1, NOON, reason="JobHeldUser", array_id="1", tasks="2-9")
    states = {JobState.PENDING: 8, JobState.RUNNING: 2}
    assert offered(head, states) == (HOLD, RELEASE, REQUEUE, CANCEL)
    free = replace(head, report=replace(head.report, reason="Priority"))
    assert offered(free, states) == (HOLD, REQUEUE, CANCEL)
    assert offered(free, {JobState.FAILED: 3, JobState.COMPLETED: 7}) == ()
