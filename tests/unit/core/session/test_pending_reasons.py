"""Reasons that are about an account, a QOS, a reservation or nodes name them."""

from __future__ import annotations

import json

import pytest

from portal.core.cluster.choice.charge import Charge
from portal.core.session.pending_reasons import SESSIONS, explain_reason, names_a_charge
from tests.support.paths import RECORDED

REASONS = json.loads((RECORDED / "pending_reasons.json").read_text(encoding="utf-8"))
CHARGE = Charge("crystals", above=(), qos=("long",), reservation="course", constraint="ssd&fast")
SPENT = (
    "Nothing that counts towards it starts until Slurm forgets what was used, or an "
    "administrator raises it."
)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("AssocGrpMemLimit", "Your account crystals has reached its limit of memory at once."),
        (
            "AssocMaxJobsLimit",
            "You have reached your limit of running jobs at once in account crystals.",
        ),
        (
            "AssocGrpCPUMinutesLimit",
            "Your account crystals has used up its budget of CPU cores over time.",
        ),
        ("AssocGrpWallLimit", "Your account crystals has used up its budget of run time."),
        ("QOSGrpCPUMinutesLimit", "QOS long has used up its budget of CPU cores over time."),
        (
            "QOSMaxCpuPerUserLimit",
            "You have reached your limit of CPU cores at once with QOS long.",
        ),
        (
            "MaxCpuPerAccount",
            "Your account crystals has reached its limit of CPU cores at once with QOS long.",
        ),
        ("QOSMaxMemoryPerJob", "It asks for more memory than one session may have with QOS long."),
        ("InvalidAccount", "Slurm does not know your account crystals any more."),
        ("InvalidQOS", "Slurm does not let it have its quality of service long any more."),
        ("QOSNotAllowed", "Its quality of service long may not be used here."),
        ("AccountNotAllowed", "Your account crystals may not use this resource group."),
        ("Reservation", "It waits for its reservation course to begin."),
        ("ReservationDeleted", "Its reservation course is gone."),
        (
            "BadConstraints",
            "No node could ever run it as it was asked for, with the features ssd&fast.",
        ),
    ],
)
def test_what_a_reason_is_about_is_named(code: str, text: str) -> None:
    assert explain_reason(code, SESSIONS, CHARGE).text == text


def test_an_active_reservation_has_no_room() -> None:
    charge = Charge(reservation="course", reservation_active=True)
    text = explain_reason("Reservation", SESSIONS, charge).text
    assert text == "It waits for room in its reservation course."


@pytest.mark.parametrize("code", ["AssocGrpCPUMinutesLimit", "QOSGrpGRESMinutes", "QOSTimeLimit"])
def test_a_used_up_budget_says_what_that_means(code: str) -> None:
    assert explain_reason(code, SESSIONS, CHARGE).advice == SPENT
    charge = Charge(resets="It is never set back.", by_time_limit=True)
    advice = explain_reason(code, SESSIONS, charge).advice
    assert advice == f"{SPENT} It is never set back. A shorter time limit can help."


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ReqNodeNotAvail", "The nodes that could run it are not available."),
        (
            "ReqNodeNotAvail, UnavailableNodes:n[1-2],gpu1",
            "The nodes that could run it are not available: n[1-2],gpu1.",
        ),
        ("ReqNodeNotAvail, UnavailableNodes:", "The nodes that could run it are not available."),
        (
            "ReqNodeNotAvail, Reserved for maintenance",
            "The nodes that could run it are reserved for maintenance before it would end.",
        ),
        ("ReqNodeNotAvail, {one} <b>", "The nodes that could run it are not available."),
    ],
)
def test_nodes_that_are_not_available(code: str, text: str) -> None:
    reason = explain_reason(code)
    assert (reason.code, reason.text) == ("ReqNodeNotAvail", text)


def test_every_reason_is_a_sentence_whatever_the_names_are() -> None:
    odd = Charge("{one}", qos=("{a}%s",), reservation="{0}", constraint="{}", resets="{x}.")
    reasons = [
        explain_reason(code, SESSIONS, charge)
        for code in REASONS
        for charge in (Charge(), CHARGE, odd)
    ]
    assert [r for r in reasons if not (r.text[0].isupper() and r.text.endswith("."))] == []
    assert [r for r in reasons if "  " in f"{r.text} {r.advice}"] == []


def test_a_reason_that_names_an_account_is_known_to_do_so() -> None:
    naming = [code for code in REASONS if "crystals" in explain_reason(code, SESSIONS, CHARGE).text]
    assert naming
    assert [code for code in naming if not names_a_charge(code)] == []
