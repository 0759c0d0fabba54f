"""Slurm's refusals and failures, from recorded words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.adapters.slurm import Slurm
from portal.adapters.transport import Completed
from portal.errors import InvalidRequest, OutcomeUnknown, Unavailable

RECORDED = Path(__file__).parents[2] / "recorded"
VERSIONS = sorted(folder.name for folder in RECORDED.iterdir() if folder.is_dir())


class Replay:
    """A transport that gives one recorded answer and remembers what was asked."""

    def __init__(self, code: int, stderr: str) -> None:
        self.answer = Completed(code, b"", stderr)
        self.asked: list[Sequence[str]] = []

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Answer."""
        self.asked.append(argv)
        return self.answer


def slurm(version: str, name: str, code: int = 1) -> Slurm:
    """A Slurm that says what was recorded under this name."""
    words = (RECORDED / version / f"{name}.stderr.txt").read_text(encoding="utf-8")
    return Slurm(Replay(code, words), "s", ".slipway", 20)


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
def test_a_silent_slurm_is_no_refusal(version: str) -> None:
    with pytest.raises(Unavailable):
        slurm(version, "sbatch-down").submit("alice", "0" * 32, "{}", "#!/bin/sh\n")
    with pytest.raises(Unavailable):
        slurm(version, "squeue-down").jobs()
    with pytest.raises(Unavailable):
        slurm(version, "scancel-down").cancel("alice", "1")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_sbatch_that_was_cut_off_may_have_been_heard(version: str) -> None:
    with pytest.raises(OutcomeUnknown):
        slurm(version, "sbatch-down", code=124).submit("alice", "0" * 32, "{}", "#!/bin/sh\n")
