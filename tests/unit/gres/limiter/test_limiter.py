"""A session keeps to its share of the GPU's time, however it launches.

GPU and time are simulated (limiter_rig.c), so these tests are exact and fast.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHIM = HERE.parents[3] / "gres" / "shim"
OURS = ["share.c", "meter.c", "limiter.c", "cuda_launch.c"]
GATES = """cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz
    cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz cuLaunchCooperativeKernelMultiDevice
    cuGraphLaunch cuGraphLaunch_ptsz cuLaunch cuLaunchGrid cuLaunchGridAsync""".split()

Play = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("limiter")
    program = directory / "rig"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-include", "glibc_compat.h"]
    options += [f'-DSLIPWAY_DIRECTORY="{directory}"', "-I.", "-o", str(program)]
    made_up = [str(HERE / "limiter_rig.c"), str(HERE / "made_up_gpu.c")]
    subprocess.run(["gcc", *options, *OURS, *made_up], cwd=SHIM, check=True)
    return program


@pytest.fixture
def play(rig: Path) -> Play:
    """Run a scenario in a new session of 25 %; its output by name."""
    rig.with_name("counters").write_bytes(bytes(1 << 20))

    def run(*scenario: str | int) -> dict[str, float]:
        command = [str(rig), *map(str, scenario)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}

    return run


@pytest.mark.parametrize("us", [10, 60, 1000, 700_000, 5_000_000])
def test_kernels_of_any_length_get_the_share(play: Play, us: int) -> None:
    assert play("busy", us)["share"] == pytest.approx(25, abs=1)


@pytest.mark.parametrize("us", [60, 1000])
def test_streams_side_by_side_count_once(play: Play, us: int) -> None:
    assert play("streams", us)["share"] == pytest.approx(25, abs=1)


def test_overlapping_short_kernels_never_get_more(play: Play) -> None:
    assert 15 < play("streams", 10)["share"] < 26


def test_a_busy_neighbour_costs_something_but_gives_nothing(play: Play) -> None:
    assert 15 < play("contended", 1000)["share"] < 26


def test_long_kernels_are_charged_among_short_ones(play: Play) -> None:
    assert play("mixed")["share"] == pytest.approx(25, abs=4)


@pytest.mark.parametrize("gate", GATES)
def test_every_launch_function_is_gated(play: Play, gate: str) -> None:
    assert play(gate)["share"] == pytest.approx(25, abs=1)


def test_the_list_of_gates_is_complete(play: Play) -> None:
    assert {name for name in play("gates") if name.startswith("cu")} == set(GATES)


def test_captured_launches_are_free_and_their_graph_is_not(play: Play) -> None:
    seen = play("captured")
    assert (seen["captured_events"], seen["captured_sleeps"]) == (0, 0)
    assert seen["share"] == pytest.approx(25, abs=1)


@pytest.mark.parametrize("scenario", ["whole", "mps"])
def test_without_a_limit_nothing_is_measured(play: Play, scenario: str) -> None:
    seen = play(scenario, 10)
    assert seen["share"] > 99
    assert (seen["events"], seen["slept_ms"]) == (0, 0)


def test_a_session_below_its_share_never_waits(play: Play) -> None:
    assert play("rare")["slept_ms"] == 0


def test_loading_a_kernel_s_code_is_not_charged(play: Play) -> None:
    """Most drivers load it at the first launch, while the GPU is idle: 5 ms for 0.1 ms of work."""
    assert play("lazy")["slept_ms"] == 0


def test_an_idle_hour_gives_no_credit(play: Play) -> None:
    """A second of work right after it: the share, and the depth of 100 ms."""
    assert 25 < play("idle")["share"] < 29


def test_only_a_few_kernels_of_unknown_length_may_be_in_flight(play: Play) -> None:
    """A thousand kernels of 100 ms, each new: eight may be in flight."""
    seen = play("flood")
    assert seen["deepest_ms"] < 900
    assert seen["share"] == pytest.approx(25, abs=1)


def test_a_kernel_that_waits_for_a_later_one_does_not_hang(play: Play) -> None:
    assert 1000 < play("persistent")["launched_after_ms"] < 5000


def test_a_refused_launch_is_neither_measured_nor_charged(play: Play) -> None:
    assert play("refused")["slept_ms"] == 0


def test_the_next_process_of_the_session_is_charged_for_the_last(play: Play) -> None:
    """A second of a kernel at 25 %: three more seconds, less the depth."""
    assert play("debt")["waited_ms"] == pytest.approx(2900, abs=20)


def test_a_program_that_ends_early_is_charged_by_the_clock(play: Play) -> None:
    """0.4 s of a kernel at 25 %: 1.2 s more, less the depth."""
    assert play("exit")["waited_ms"] == pytest.approx(1100, abs=20)


def test_measurements_survive_the_end_of_a_context(play: Play) -> None:
    seen = play("contexts")
    assert seen["share"] == pytest.approx(25, abs=1)
    assert seen["events"] == 0


def test_unmeasurable_kernels_are_waited_for(play: Play) -> None:
    seen = play("unmeasurable", 1000)
    assert seen["waits"] > 1000
    assert seen["share"] == pytest.approx(25, abs=1)
