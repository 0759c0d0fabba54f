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
OURS = """share.c busy.c kinds.c events.c stretches.c meter.c flight.c meters.c load.c limiter.c
    cuda_launch.c""".split()
GATES = """cuLaunchKernel cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz
    cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz cuLaunchCooperativeKernelMultiDevice
    cuGraphLaunch cuGraphLaunch_ptsz cuLaunch cuLaunchGrid cuLaunchGridAsync""".split()

Play = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("limiter")
    program = directory / "rig"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"]
    options += ["-include", "glibc_compat.h"]
    options += [f'-DSLIPWAY_DIRECTORY="{directory}"', "-I.", "-o", str(program)]
    made_up = [str(HERE / "limiter_rig.c"), str(HERE / "made_up_gpu.c")]
    subprocess.run(["gcc", *options, *OURS, *made_up], cwd=SHIM, check=True)
    return program


@pytest.fixture
def said() -> list[str]:
    """What the program printed on stderr."""
    return []


@pytest.fixture
def play(rig: Path, said: list[str]) -> Play:
    """Run a scenario in a new session of 25 %; its output by name."""
    rig.with_name("counters").write_bytes(bytes(1 << 20))

    def run(*scenario: str | int) -> dict[str, float]:
        command = [str(rig), *map(str, scenario)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        said.extend(done.stderr.splitlines())
        return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}

    return run


@pytest.mark.parametrize("us", [10, 60, 1000, 30_000, 700_000, 1_500_000])
def test_kernels_of_any_length_get_the_share(play: Play, us: int) -> None:
    assert play("busy", us)["share"] == pytest.approx(25, abs=1)


@pytest.mark.parametrize(("us", "points"), [(10, 4), (60, 1), (1000, 1)])
def test_streams_by_turns_get_the_share(play: Play, us: int, points: float) -> None:
    """How far very short kernels overlap is an estimate."""
    assert play("streams", us)["share"] == pytest.approx(25, abs=points)


@pytest.mark.parametrize("scenario", ["by_turns", "by_turns_fast", "by_turns_slow"])
def test_streams_by_turns_that_are_waited_for_get_the_share(play: Play, scenario: str) -> None:
    """Before, 18.4: the second of them was charged as expected, beside what was measured. Also if
    the GPU's clock is 100 us a second ahead or behind."""
    assert play(scenario, 50)["share"] == pytest.approx(25, abs=1)


def test_streams_by_turns_that_are_waited_for_do_not_wait_below_the_share(play: Play) -> None:
    """Two kernels of 50 us side by side are 25 us each. Before, 32."""
    assert play("by_turns_99", 50)["us_per_launch"] == pytest.approx(25, rel=0.02)


def test_streams_by_turns_cost_two_events_in_a_millisecond(play: Play) -> None:
    seen = play("turns")
    assert seen["records_per_ms"] < 2.2
    assert seen["slept_ms"] == 0


@pytest.mark.parametrize(("us", "most"), [(20, 2), (200, 2), (3000, 0.3)])
def test_waiting_for_each_kernel_costs_no_more_events(play: Play, us: int, most: float) -> None:
    seen = play("waiting", us)
    assert seen["share"] == pytest.approx(25, abs=1)
    assert seen["records_per_ms"] < most


@pytest.mark.parametrize("scenario", ["grown", "grown_unseen"])
@pytest.mark.parametrize("us", [5000, 50_000, 200_000])
def test_a_function_that_takes_longer_than_before(play: Play, scenario: str, us: int) -> None:
    assert play(scenario, us)["share"] == pytest.approx(25, abs=1.5)


@pytest.mark.parametrize("is_seen", [True, False])
def test_short_and_long_launches_in_turns_that_are_waited_for(play: Play, is_seen: bool) -> None:
    """20 ms or 10 us; without a wait that is seen, known by the mean of random samples."""
    assert play("in_turns", int(is_seen))["share"] == pytest.approx(25, abs=3)


def test_new_grids_of_a_known_function_do_not_wait(play: Play) -> None:
    """20,000 grids on a GPU that is done at once: 13 us for each, before it looked first."""
    seen = play("shapes")
    assert seen["sleeps"] <= 1  # the second launch waits until the first has been measured
    assert seen["records"] < 600


def test_programmatic_dependent_launches_stay_together(play: Play) -> None:
    """600 of 5 us are three milliseconds, with a mark at the end of each."""
    assert play("overlapping")["stretches"] <= 3


def test_dependent_launches_that_became_shorter_are_not_charged_as_before(play: Play) -> None:
    """5 us, after 50. Before, each took 12."""
    assert play("dependent", 5)["us_per_launch"] == pytest.approx(5, rel=0.05)


def test_what_has_ended_is_charged_no_longer_than_since_its_launch(play: Play) -> None:
    """A launch in 7 us, where a sample takes longer. Before, 8.2 us at 99 %."""
    assert play("latent", 2)["us_per_launch"] == pytest.approx(7, rel=0.03)


def test_work_that_is_not_waited_for_is_charged_without_the_idle_time(play: Play) -> None:
    """A millisecond of kernels, two of computing: a third of the time, if it may."""
    assert play("bursts")["share"] == pytest.approx(25, abs=1)


def test_streams_that_are_made_and_destroyed(play: Play) -> None:
    assert play("churn")["share"] == pytest.approx(25, abs=1)


def test_root_is_told_what_was_measured(play: Play) -> None:
    seen = play("measured")
    assert seen["measured_ms"] == pytest.approx(seen["share"] * 600, rel=0.01)


@pytest.mark.parametrize(
    ("charge", "percent", "share"), [(1000, 50, 50), (500, 25, 50), (500, 10, 20), (1000, 25, 25)]
)
def test_root_s_terms_hold(play: Play, rig: Path, charge: int, percent: int, share: float) -> None:
    """The rig writes the file anew once a second of its own clock, with this block."""
    block = f"gpu=GPU-1\nmemory=0\ncharge={charge}\npercent={percent}\n"
    rig.with_name("terms").write_text(block)
    assert play("terms", 1000)["share"] == pytest.approx(share, abs=1.5)


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
    """Most drivers load it at the first launch, while the GPU is idle: 5 ms for 0.1 ms of work.

    A few naps may be for work in flight: 500 such launches take 2.5 seconds.
    """
    assert play("lazy")["slept_ms"] < 20


def test_an_idle_hour_gives_no_credit(play: Play) -> None:
    """A second of work right after it: the share, and the depth of 100 ms."""
    assert 25 < play("idle")["share"] < 29


def test_only_some_kernels_of_unknown_length_may_be_in_flight(play: Play) -> None:
    """A thousand kernels of 100 ms, each of a function of its own: 32 may be in flight."""
    seen = play("flood")
    assert seen["deepest_ms"] < 3300
    assert seen["share"] == pytest.approx(25, abs=1)


def test_a_kernel_that_waits_for_another_stream_does_not_hang(play: Play) -> None:
    """Before, launches of other streams waited for a second."""
    assert play("persistent")["launched_after_ms"] < 20


def test_a_kernel_that_waits_for_the_program_does_not_hang(play: Play) -> None:
    """The next launch behind it in its stream returns after a second, or two as timers are late."""
    assert 900 < play("behind")["launched_after_ms"] < 2200


def test_a_long_kernel_does_not_stop_other_streams(play: Play) -> None:
    assert play("beside")["launched_after_us"] < 1000


def test_no_thread_waits_while_another_one_is_blocked_in_the_driver(play: Play) -> None:
    assert play("blocked")["launched"] == 100


def test_a_refused_launch_is_neither_measured_nor_charged(play: Play) -> None:
    assert play("refused")["slept_ms"] == 0


def test_the_next_process_of_the_session_is_charged_for_the_last(play: Play) -> None:
    """A second of a kernel at 25 %: three more seconds, less the depth."""
    assert play("debt")["waited_ms"] == pytest.approx(2900, abs=20)


def test_a_debt_is_at_most_ten_seconds_and_is_announced(play: Play, said: list[str]) -> None:
    """After a minute of one kernel at 25 %, which would be three minutes."""
    seen = play("long_debt")
    assert 8900 < seen["waited_ms"] <= 10_000
    assert seen["later_ms"] == 0
    (line,) = said
    assert line.startswith("slipway: this session waits for its share of the GPU (25 %)")


def test_a_short_wait_is_not_announced(play: Play, said: list[str]) -> None:
    assert play("busy", 200_000)["slept_ms"] > 10_000
    assert said == []


def test_root_can_cancel_the_debt(play: Play) -> None:
    assert play("cancelled")["waited_ms"] < 1020


def test_a_signal_ends_the_wait_but_not_the_debt(play: Play) -> None:
    """Python runs the user's handler only once the launch has returned."""
    seen = play("signalled", 1)
    assert seen["first_ms"] < 30
    assert seen["both_ms"] > 8000


def test_many_signals_end_one_wait_in_a_second(play: Play) -> None:
    """A profiler's timer would otherwise end all waiting."""
    seen = play("signalled", 1_000_000)
    assert seen["first_ms"] < 30
    assert 1000 < seen["both_ms"] < 1100


def test_a_program_that_ends_early_is_charged_by_the_clock(play: Play) -> None:
    """0.4 s of a kernel at 25 %: 1.2 s more, less the depth."""
    assert play("exit")["waited_ms"] == pytest.approx(1100, abs=20)


def test_measurements_survive_the_end_of_a_context(play: Play) -> None:
    seen = play("contexts")
    assert seen["share"] == pytest.approx(25, abs=1)
    assert seen["events"] == 0


@pytest.mark.parametrize(("us", "most"), [(10, 26), (60, 26), (1000, 26), (100_000, 35)])
def test_streams_in_which_no_event_can_be_recorded_are_estimated(
    play: Play, us: int, most: float
) -> None:
    """Green contexts' streams: neither waited for nor free. (Nothing here could wait for one.)"""
    seen = play("unmeasurable", us)
    assert 20 < seen["share"] < most
    assert seen["events"] < 5
