"""What the watchdog tells each session about its neighbours."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from portal.node.common.fgpu import MIB
from portal.node.gpu import cli, slices
from portal.node.gpu.slices import JobSlice, Part, parse_slice
from portal.node.gpu.watchdog.accounts import QUIET
from portal.node.gpu.watchdog.neighbours import OFFSET, Measurement, Neighbours, forgive
from tests.unit.node.gpu.watchdog.taking_turns import TakingTurns

SECOND = 1_000_000_000
GPU = "GPU-0"


def slice_(percent: int, policy: str = "strict") -> JobSlice:
    return JobSlice("limiter", (Part(GPU, 2048 * MIB, percent),), policy)


class Node:
    """A GPU with one process for each job, whose PID is the job's number."""

    def __init__(self, folder: Path, **jobs: JobSlice) -> None:
        self.folder = folder
        self.logged: list[str] = []
        self.neighbours = Neighbours(lambda job: folder / str(job), self.logged.append)
        self.now = 1000 * SECOND
        self.counts: dict[int, int] = {}
        self.slices: dict[int, JobSlice] = {}
        self.waiting: set[int] = set()
        for job, found in jobs.items():
            self.add(int(job.removeprefix("job")), found)

    def add(self, job: int, found: JobSlice) -> None:
        (self.folder / str(job)).mkdir()
        self.slices[job] = found
        self.count(job, 0)

    def wait(self, *jobs: int) -> None:
        """These wait for their share from now on."""
        self.waiting |= set(jobs)

    def count(self, job: int, seconds: float) -> None:
        """The session has measured so much more."""
        self.counts[job] = self.counts.get(job, 0) + int(seconds * SECOND)
        data = bytearray(1 << 20)
        arrival = self.now if job in self.waiting else 0
        struct.pack_into("=qq", data, OFFSET, arrival, self.counts[job])
        (self.folder / str(job) / "counters").write_bytes(data)

    def poll(
        self, busy: Mapping[int, float] | None, measured: Mapping[int, float] | None = None
    ) -> None:
        """A second later: percent by NVML, and seconds by the sessions."""
        self.now += SECOND
        for job, seconds in (measured or {}).items():
            self.count(job, seconds)
        memory = {job: {job: 100 * MIB} for job in self.slices}
        self.neighbours.record(Measurement(GPU, self.slices, memory, busy, self.now))
        for job, found in self.slices.items():
            self.neighbours.write(job, found)

    def load(self, job: int) -> dict[str, str]:
        text = (self.folder / str(job) / "load").read_text()
        return dict(line.split("=") for line in text.splitlines())


def test_the_file_has_what_nvml_told(tmp_path: Path) -> None:
    node = Node(tmp_path, job12=slice_(25))
    node.poll({12: 23.14})
    assert node.load(12) == {
        "version": "1",
        "time": str(node.now),
        "gpu": GPU,
        "busy": "231",
        "memory": str(100 * MIB),
        "charge": "1000",
        "percent": "25",
    }
    node.poll(None)
    assert "busy" not in node.load(12)


def charges(node: Node, polls: int, busy: dict[int, float], measured: dict[int, float]) -> int:
    """Job 1's charge after some polls that are all the same."""
    for _ in range(polls):
        node.poll(busy, measured)
    return int(node.load(1)["charge"])


def test_a_job_alone_is_charged_in_full(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    assert charges(node, 9, {1: 50, 2: 0}, {1: 0.5}) == 1000
    assert charges(node, 9, {1: 50, 2: 0}, {1: 0.9}) == 1000


def test_what_neighbours_took_of_the_measured_time_is_not_charged(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    assert charges(node, 9, {1: 40, 2: 25}, {1: 0.6, 2: 0.5}) == pytest.approx(750, rel=0.1)
    assert charges(node, 9, {1: 49, 2: 48}, {1: 1.0, 2: 1.0}) == pytest.approx(500, rel=0.1)


def test_sessions_that_wait_while_the_gpu_is_idle_are_charged_less(tmp_path: Path) -> None:
    """Poll by poll, until they use together what they should."""
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    node.wait(1, 2)
    first = charges(node, 3, {1: 40, 2: 40}, {1: 0.6, 2: 0.6})
    second = charges(node, 3, {1: 40, 2: 40}, {1: 0.6, 2: 0.6})
    assert second < 0.97 * first
    assert charges(node, 6, {1: 60, 2: 60}, {1: 0.6, 2: 0.6}) > 1.05 * second


def test_a_share_that_was_lent_is_no_excess_later(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(25, "fair"), job2=slice_(50, "fair"))
    charges(node, 30, {1: 99, 2: 0}, {1: 0.99})
    assert charges(node, 9, {1: 33, 2: 64}, {1: 0.66, 2: 0.99}) < 700


def test_nothing_is_known_without_nvml_s_figures(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    assert charges(node, 9, {1: 48, 2: 48}, {1: 0.96, 2: 0.96}) < 1000
    node.poll(None, {1: 0.96})
    assert node.load(1)["charge"] == "1000"


def test_when_the_neighbour_leaves_the_full_charge_is_back_soon(tmp_path: Path) -> None:
    """NVML's looks may miss it for three polls."""
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    assert charges(node, 9, {1: 48, 2: 48}, {1: 1.0, 2: 1.0}) == pytest.approx(500, rel=0.1)
    charges(node, QUIET, {1: 55, 2: 0}, {1: 0.55})
    assert charges(node, 4, {1: 55, 2: 0}, {1: 0.55}) > 930


def test_programs_of_no_job_take_turns_too_until_they_end(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(25))
    assert charges(node, 9, {1: 20, 77: 80}, {1: 0.4}) < 600
    charges(node, QUIET, {1: 25}, {1: 0.25})
    assert charges(node, 4, {1: 25}, {1: 0.25}) > 930


def test_a_charge_outlasts_the_wait_after_a_long_kernel(tmp_path: Path) -> None:
    """Before, it was forgotten after eight seconds, and the next kernel charged in full again."""
    node = Node(tmp_path, **{f"job{job}": slice_(12) for job in range(1, 9)})
    busy, measured = dict.fromkeys(range(1, 9), 12.5), dict.fromkeys(range(1, 9), 1.0)
    before = charges(node, 9, busy, measured)
    assert before < 200
    assert charges(node, 11, {}, {}) == before
    assert charges(node, 2, {}, {}) == 1000


@pytest.mark.parametrize("measured", [0.0, 1e6])
def test_a_forged_count_does_not_change_the_forger_s_charge(
    tmp_path: Path, measured: float
) -> None:
    """Nor does hiding what was measured change the neighbour's much, as NVML shows the use."""
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    for _ in range(9):
        node.poll({1: 48, 2: 48}, {1: 1.0, 2: measured})
    honest, forger = (int(node.load(job)["charge"]) for job in (1, 2))
    assert honest == pytest.approx(500, rel=0.1)
    assert forger >= 480


def test_nothing_is_taken_off_for_who_is_beyond_the_share_for_minutes(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(25), job2=slice_(50))
    assert charges(node, 120, {1: 50, 2: 50}, {1: 1.0, 2: 1.0}) == 1000


@pytest.mark.parametrize(
    ("percents", "kernel", "least"),
    [
        ([50, 50], 0.001, 0.95),
        ([25] * 4, 0.001, 0.95),
        ([12] * 8, 0.001, 0.9),
        ([25, 50], 0.005, 0.94),
        ([12] * 8, 0.2, 0.9),
    ],
)
def test_sessions_have_their_shares_although_nvml_looks_five_times_a_second(
    tmp_path: Path, percents: list[int], kernel: float, least: float
) -> None:
    """Before, one of them had 89, 71, 66, 92 and 20 % of its share."""
    warm = max(8.0, 10 * kernel * 100 / min(percents))
    shares = TakingTurns(tmp_path, percents, kernel, 1).shares(warm, 1.5 * warm)
    parts = [share / percent for share, percent in zip(shares, percents, strict=True)]
    assert min(parts) >= least
    assert max(parts) <= 1.1


@pytest.mark.parametrize("data", [b"", b"short", bytes(1 << 20), b"\xff" * (1 << 20)])
def test_any_content_of_the_counters_is_survived(tmp_path: Path, data: bytes) -> None:
    node = Node(tmp_path, job1=slice_(50), job2=slice_(50))
    node.poll({1: 48, 2: 48}, {1: 0.9})
    (tmp_path / "1" / "counters").write_bytes(data)
    node.poll({1: 48, 2: 48})
    assert 500 <= int(node.load(1)["charge"]) <= 1000
    (tmp_path / "1" / "counters").unlink()
    node.poll({1: 48, 2: 48})
    assert 500 <= int(node.load(1)["charge"]) <= 1000


def percents(node: Node) -> list[int]:
    return [int(node.load(job)["percent"]) for job in node.slices]


def test_strict_shares_stay(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(25), job2=slice_(50))
    node.poll({1: 25})
    assert percents(node) == [25, 50]


def test_fair_lends_what_is_idle_and_takes_it_back(tmp_path: Path) -> None:
    fair = {f"job{job}": slice_(percent, "fair") for job, percent in enumerate((25, 25, 50), 1)}
    node = Node(tmp_path, **fair)
    node.poll({1: 25, 2: 0, 3: 0})
    assert percents(node) == [100, 25, 50]
    node.poll({1: 60, 2: 0, 3: 40})
    assert percents(node) == [33, 25, 66]
    node.poll({1: 33, 2: 10, 3: 50})
    assert percents(node) == [25, 25, 50]
    node.poll(None)
    assert percents(node) == [25, 25, 50]


def test_a_removed_folder_is_no_error(tmp_path: Path) -> None:
    node = Node(tmp_path, job1=slice_(25))
    node.poll({})
    for file in (tmp_path / "1").iterdir():
        file.unlink()
    (tmp_path / "1").rmdir()
    node.poll({})
    assert node.logged == []


def test_the_policy_is_part_of_the_slice() -> None:
    for policy in ("strict", "fair"):
        assert parse_slice(slice_(25, policy).text()) == slice_(25, policy)
    assert "policy" not in slice_(25).text()


def test_root_can_cancel_what_a_job_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`slipway-gpu forgive`: the arrival time becomes 0, the count of what was measured stays."""
    node = Node(tmp_path, job12=slice_(25))
    file = tmp_path / "12" / "counters"
    data = bytearray(1 << 20)
    struct.pack_into("=qq", data, OFFSET, 10**15, 77)
    file.write_bytes(data)
    (tmp_path / "12" / "slice").write_text(node.slices[12].text())
    monkeypatch.setattr(slices, "folder_of", lambda job: tmp_path / str(job))
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert cli.main(["forgive"]) == 0
    assert struct.unpack_from("=qq", file.read_bytes(), OFFSET) == (0, 77)
    monkeypatch.setenv("SLURM_JOB_ID", "13")
    assert cli.main(["forgive"]) == 1
    assert "No such file" in capsys.readouterr().err
    file.unlink()
    with pytest.raises(FileNotFoundError):
        forgive(tmp_path / "12", node.slices[12])
