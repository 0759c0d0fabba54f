"""The process with pyslurm: it may hang, die, lie, or be unusable."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from portal.adapters.slurm.client import Slurm
from portal.adapters.slurm.pyslurm import process
from portal.adapters.slurm.pyslurm.process import PySlurmProcess
from portal.cli.checks.queue_reader import check_queue_reader
from portal.config.cluster import SlurmSettings
from portal.errors import Unavailable
from tests.support.clock import FakeClock
from tests.support.slurm import FakeSlurm
from tests.unit.adapters.slurm.pyslurm.fake_pyslurm import RECORD

LINES = RECORD["squeue"].splitlines()
Start = Callable[..., PySlurmProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process with this Python program in the place of child.py."""
    running: list[PySlurmProcess] = []

    def begin(program: str, seconds: float = 20) -> PySlurmProcess:
        running.append(PySlurmProcess(seconds, (sys.executable, "-c", f"import sys\n{program}")))
        return running[-1]

    yield begin
    for each in running:
        each.end()


def answering(times: str = "sys.stdin") -> str:
    """A program that answers with the recorded queue, in pieces."""
    return (
        f"lines = {LINES!r}\n"
        f"for _ in {times}:\n"
        "    print('jobs', len(lines), flush=True)\n"
        "    for line in lines: print(line, flush=True)\n"
    )


def test_the_process_is_asked_again_and_again(start: Start) -> None:
    reader = start(answering())
    texts = {reader.queue() for _ in range(3)}
    assert texts == {"\n".join(LINES) + "\n"}


def test_an_empty_queue(start: Start) -> None:
    assert start("for _ in sys.stdin: print('jobs 0', flush=True)").queue() == ""


def test_slurm_reads_its_jobs_from_it(start: Start) -> None:
    commands = FakeSlurm(FakeClock())
    slurm = Slurm(commands, "slipway", ".slipway", 20, "", start(answering()).queue)
    jobs = slurm.jobs()
    assert len(jobs) == len(LINES)
    assert slurm.jobs()[next(iter(jobs))] is next(iter(jobs.values()))


def test_a_process_that_hangs_is_ended_and_started_anew(start: Start) -> None:
    reader = start("import time\nprint('jobs 2', flush=True)\ntime.sleep(60)", seconds=0.3)
    for _ in range(2):
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="pyslurm took too long"):
            reader.queue()
        assert time.monotonic() - begun < 5


def test_slurm_that_does_not_answer_is_not_asked_by_squeue_as_well(start: Start) -> None:
    reader = start("for _ in sys.stdin: print('down Socket timed out', flush=True)")
    with pytest.raises(Unavailable, match="Socket timed out"):
        reader.queue()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('unusable pyslurm cannot be imported: none')", "pyslurm cannot be imported: none"),
        ("sys.exit(1)", "the process with pyslurm ended"),
        ("print('jobs of slurmctld, a line of a library')", "of slurmctld"),
        (answering("range(1)").replace("print(line", "sys.exit(1); print(line"), "ended"),
    ],
)
def test_where_pyslurm_cannot_be_used_squeue_is(
    start: Start, program: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = start(program)
    with caplog.at_level(logging.WARNING):
        assert [reader.queue(), reader.queue()] == [None, None]
    assert problem in reader.problem
    assert caplog.text.count("squeue is used") == 1  # said once, not at every poll
    commands = FakeSlurm(FakeClock())
    assert Slurm(commands, "slipway", ".slipway", 20, "", reader.queue).jobs() == {}


def test_it_is_tried_again_later(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RETRY_SECONDS", 0.0)
    reader = start("sys.exit(1)")
    assert reader.queue() is None
    reader._argv = (sys.executable, "-c", f"import sys\n{answering()}")
    assert reader.queue() is not None
    assert reader.problem == ""


def test_an_answer_without_an_end_is_bounded(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 1000)
    with pytest.raises(Unavailable):
        start("print('jobs 9', flush=True)\nwhile True: print('x' * 500, end='')").queue()


def test_the_real_program_says_why_it_cannot_be_used() -> None:
    reader = PySlurmProcess(20)
    assert reader.queue() is None
    assert reader.problem


def test_check_says_nothing_about_the_default() -> None:
    assert list(check_queue_reader(SlurmSettings())) == []


@pytest.mark.parametrize(
    ("program", "ok", "text"),
    [
        (answering(), True, f"on this host ({len(LINES)} jobs)"),
        ("print('unusable no pyslurm')", False, "no pyslurm; squeue is used. install what"),
        (
            "for _ in sys.stdin: print('down gone', flush=True)",
            False,
            "Slurm does not answer: gone",
        ),
        ("for _ in sys.stdin: print('jobs 1\\nodd', flush=True)", False, "fields in"),
    ],
)
def test_check_says_whether_it_works(start: Start, program: str, ok: bool, text: str) -> None:
    settings = SlurmSettings.model_validate({"reader": "pyslurm"})
    (finding,) = check_queue_reader(settings, start(program))
    assert finding.ok is ok
    assert text in finding.text
