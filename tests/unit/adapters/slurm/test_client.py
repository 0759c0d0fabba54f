"""Slurm's refusals and failures, from recorded output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.transport import Completed
from portal.errors import InvalidRequest, OutcomeUnknown, Unavailable
from tests.support.paths import RECORDED
from tests.support.recordings import VERSIONS
from tests.support.transports import ReplayTransport


def slurm(version: str, name: str, code: int = 1) -> Slurm:
    """A Slurm whose output was recorded under this name."""
    words = (RECORDED / version / f"{name}.stderr.txt").read_text(encoding="utf-8")
    return Slurm(ReplayTransport(Completed(code, b"", words)), "s", ".slipway", 20)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "field"),
    [("sbatch-refused", "resources.memory"), ("sbatch-partition", "resource_group")],
)
def test_a_refusal_names_the_field(version: str, name: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        slurm(version, name).submit("alice", "0" * 32, "{}", "#!/bin/sh\n")
    assert caught.value.errors[0].field == field
    assert "Slurm refused it" in caught.value.errors[0].message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_silent_slurm_is_not_a_refusal(version: str) -> None:
    with pytest.raises(Unavailable):
        slurm(version, "sbatch-down").submit("alice", "0" * 32, "{}", "#!/bin/sh\n")
    with pytest.raises(Unavailable):
        slurm(version, "squeue-down").jobs()
    with pytest.raises(Unavailable):
        slurm(version, "scancel-down").cancel("alice", "1")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interrupted_sbatch_may_have_succeeded(version: str) -> None:
    with pytest.raises(OutcomeUnknown):
        slurm(version, "sbatch-down", code=124).submit("alice", "0" * 32, "{}", "#!/bin/sh\n")


class Picky:
    """An accounting that refuses a query with a bad job number in it."""

    def __init__(self, *bad: str, down: bool = False) -> None:
        self.bad = bad
        self.down = down
        self.questions = 0

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """The response."""
        self.questions += 1
        if self.down:
            return Completed(1, b"", "sacct: error: slurmdbd: Sending PersistInit msg: refused\n")
        ids = next(word for word in argv if word.startswith("--jobs=")).partition("=")[2].split(",")
        if wrong := [each for each in ids if each in self.bad]:
            return Completed(1, b"", f"sacct: fatal: Bad job/step specified: {wrong[0]}\n")
        lines = [
            "\x1f".join([each, "alice", "COMPLETED", "n1", "1", "2", "3", "0:0"]) for each in ids
        ]
        return Completed(0, "\n".join(lines).encode(), "")


def test_one_bad_number_does_not_break_the_query() -> None:
    """M7: everybody's sessions hung as long as it existed."""
    ids = [str(number) for number in range(100, 140)]
    picky = Picky("117", "118", "139")
    found = Slurm(picky, "s", ".slipway", 20).ended([*ids, "²", "", "12345678901", "1 2"])
    assert set(found) == set(ids) - {"117", "118", "139"}
    assert picky.questions < 40


def test_an_unavailable_accounting_is_queried_once() -> None:
    picky = Picky(down=True)
    with pytest.raises(Unavailable):
        Slurm(picky, "s", ".slipway", 20).ended([str(number) for number in range(1, 50)])
    assert picky.questions == 1


def test_a_refusal_that_names_no_number_says_of_no_job_that_it_is_unknown() -> None:
    """A broken slurm.conf on the login node, for example: no job is lost by that."""
    refused = Completed(1, b"", "sacct: fatal: Unable to process configuration file\n")
    with pytest.raises(Unavailable, match="configuration file"):
        Slurm(ReplayTransport(refused), "s", ".slipway", 20).ended(["1"])


def test_without_time_to_find_the_bad_number_no_job_is_unknown() -> None:
    with pytest.raises(Unavailable, match="Bad job"):
        Slurm(Picky("117"), "s", ".slipway", -1).ended(["116", "117"])


def test_sessions_are_cancelled_by_the_operator_if_configured() -> None:
    """H3: the end of a session does not wait for its owner's shell."""
    replay = ReplayTransport(Completed(0, b"", ""))
    Slurm(replay, "s", ".slipway", 20, "operator").cancel("alice", "1", "²", "2")
    Slurm(replay, "s", ".slipway", 20).cancel("alice", "3")
    Slurm(replay, "s", ".slipway", 20).cancel("alice", "²")
    assert [list(argv)[3:] for argv in replay.asked] == [
        ["scancel", "--quiet", "--user=alice", "1", "2"],
        ["scancel", "--quiet", "3"],
    ]
    assert replay.users == ["operator", "alice"]


def test_without_accounting_only_the_queue_tells_ends() -> None:
    words = "Slurm accounting storage is disabled\n"
    off = Slurm(ReplayTransport(Completed(1, b"", words)), "s", ".slipway", 20)
    assert off.ended(["1"]) == {}
    assert off.ended_named("0" * 32, "alice", datetime.now(UTC)) == []
    refused = Slurm(
        ReplayTransport(Completed(1, b"", "sacct: what a surprise\n")), "s", ".slipway", 20
    )
    with pytest.raises(Unavailable):
        refused.ended(["1"])
