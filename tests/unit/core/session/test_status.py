"""A session as users see it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from portal.core.auth.person import Person
from portal.core.session.idle import NOTICE_AFTER
from portal.core.session.pending_reasons import explain_reason
from portal.core.session.session import State
from portal.core.session.status import (
    ENDS_SOON,
    NODE_SILENT_AFTER,
    elapsed,
    next_change,
    shown_reason,
    shown_state,
)
from portal.core.site_rules import SiteRules
from portal.web.api.models.sessions import SessionContext, SessionOut
from tests.support.fakes import APPS, World
from tests.support.paths import RECORDED
from tests.support.sessions import REQUEST, make_ready

ALICE = Person("alice", admin=False, login="a")


def test_no_secret_and_nothing_internal_is_shown(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    context = SessionContext(world.status.slurm_status(), world.clock.now)
    answer = SessionOut.of(session, list(APPS.values()), [], context)
    shown, text = answer.model_dump(mode="json"), answer.model_dump_json()
    assert session.token_hash not in text
    assert "10.0.0.1" not in text
    assert "40000" not in text
    assert shown["resources"] == {
        "cpus": 1,
        "memory": "600m",
        "shared_memory": "300m",
        "fgpu": None,
        "gpu": None,
    }
    assert [app["name"] for app in shown["apps"]] == list(APPS)


def test_submitting_is_shown_as_pending(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    status = world.status.slurm_status()
    assert shown_state(session, status, world.clock.now) == State.PENDING
    reason = shown_reason(session, status, world.clock.now)
    assert reason is not None
    assert reason.code == "Submitting"


def test_elapsed_counts_from_the_start_to_the_end(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    assert elapsed(session, world.clock.now) is None
    session = make_ready(world, session)
    world.clock.advance(minutes=5)
    span = elapsed(session, world.clock.now)
    assert span is not None
    assert span.total_seconds() == 300


REASONS = json.loads((RECORDED / "pending_reasons.json").read_text(encoding="utf-8"))


def test_every_reason_of_every_slurm_version_has_a_text() -> None:
    assert len(REASONS) > 200
    reasons = {code: explain_reason(code) for code in REASONS}
    assert [code for code, reason in reasons.items() if reason.code != code] == []
    texts = {code: reason.text for code, reason in reasons.items()}
    assert [code for code, text in texts.items() if not text.endswith(".")] == []
    assert [code for code, text in texts.items() if text.startswith("Slurm says")] == []


def test_free_text_after_a_reason() -> None:
    assert explain_reason("ReqNodeNotAvail, UnavailableNodes:n1").code == "ReqNodeNotAvail"
    assert explain_reason(None).code == "None"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("QOSMaxCpuPerUserLimit", "You have reached your limit of CPU cores at once."),
        ("AssocGrpMemLimit", "Your group has reached its limit of memory at once."),
        ("AssocGrpGRESMinutes", "Your group has used up its budget of GPUs over time."),
        ("MaxCpuRunMinsPerUser", "You have reached your limit of CPU cores times time limit."),
        ("QOSMaxMemoryPerJob", "It asks for more memory than one session may have."),
        ("QOSMinGRES", "It asks for less GPUs than a session must have here."),
        ("AssocMaxJobsLimit", "You have reached your limit of running jobs at once."),
        ("SomethingNew", "Slurm says: SomethingNew."),
    ],
)
def test_limits_name_their_origin_and_resource(code: str, words: str) -> None:
    assert explain_reason(code).text == words


def test_when_a_session_is_shown_differently_by_itself(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    now, rules = world.clock.now, SiteRules(idle_minutes=60)
    assert next_change(session, rules, now) is None
    running = make_ready(world, session).model_copy(
        update={"usage_at": now, "last_used": now - NOTICE_AFTER, "deadline": None}
    )

    def changes(**fields: datetime) -> float | None:
        moment = next_change(running.model_copy(update=fields), rules, now)
        return None if moment is None else (moment - now).total_seconds()

    assert changes() == NODE_SILENT_AFTER.total_seconds()
    earlier = now - timedelta(minutes=1)
    assert changes(usage_at=earlier, ready=earlier) == NODE_SILENT_AFTER.total_seconds() - 60
    earlier = now - NODE_SILENT_AFTER - timedelta(seconds=1)
    silent = running.model_copy(update={"usage_at": earlier, "ready": earlier, "last_used": now})
    assert next_change(silent, SiteRules(), now) is None, "until a report, which is a change"
    assert changes(last_used=now - NOTICE_AFTER + timedelta(seconds=7)) == 7
    assert changes(last_used=now - timedelta(minutes=45) + timedelta(seconds=8)) == 8
    assert changes(deadline=now + ENDS_SOON + timedelta(seconds=9)) == 9
