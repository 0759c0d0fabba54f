"""The operator's account, as slurmctld knows it; its answers are recorded."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.users import KnownUser, user_parse
from portal.cli.checks.operator import check_operator
from portal.errors import Unavailable
from tests.support.paths import ROOT

RECORDED = ROOT / "tests" / "recorded" / "24.11"


def recorded(file: str, name: str) -> KnownUser | None:
    """One recorded user."""
    return user_parse((RECORDED / file).read_text(), name)


OPERATOR = KnownUser(1004, "Operator")


@pytest.mark.parametrize(
    ("name", "uid", "known", "ok", "words"),
    [
        ("slipway-operator", 1004, OPERATOR, True, "may extend sessions"),
        ("", 0, None, True, "slurm.operator is not set"),
        ("ghost", -1, None, False, "the login node has no account ghost"),
        ("ghost", 1004, None, False, "sacctmgr add user ghost account=root adminlevel=operator"),
        ("ghost", 1004, KnownUser(None, "Operator"), False, "create it there with UID 1004"),
        ("x", 1005, OPERATOR, False, "UID 1005 on the login node and 1004 for slurmctld"),
        ("x", 1004, KnownUser(1004, "None"), False, "AdminLevel=None: sacctmgr modify user x"),
    ],
)
def test_what_is_said(name: str, uid: int, known: KnownUser | None, ok: bool, words: str) -> None:
    (one,) = check_operator(name, lambda _name: uid, lambda _name: known)
    assert one.ok is ok
    assert words in one.text


def test_what_slurmctld_says() -> None:
    assert recorded("operator.txt", "slipway-operator") == OPERATOR
    assert recorded("operator.txt", "slipway") is None
    # Created in accounting, but not on slurmctld's host.
    assert recorded("operator-unknown.txt", "ghost") == KnownUser(None, "Operator")


def test_a_silent_slurm() -> None:
    def silent(_name: str) -> KnownUser | None:
        raise Unavailable("Slurm does not answer")

    (one,) = check_operator("x", lambda _name: 1, silent)
    assert not one.ok
