"""What a process has of a GPU while others compute, too."""

from __future__ import annotations

import pytest

from portal.node.gpu.watchdog.turns import mean_part, others


def test_all_that_always_compute_have_equal_parts() -> None:
    assert mean_part([]) == 1
    assert mean_part([1.0]) == pytest.approx(1 / 2)
    assert mean_part([1.0] * 7) == pytest.approx(1 / 8)


def test_who_computes_sometimes_takes_less() -> None:
    assert mean_part([0.5]) == pytest.approx(0.5 * 1 + 0.5 / 2)
    assert mean_part([0.5, 0.5]) == pytest.approx(0.25 * 1 + 0.5 / 2 + 0.25 / 3)


def test_several_processes_of_a_job_count_each() -> None:
    assert mean_part([2.0]) == pytest.approx(1 / 3)
    assert mean_part([1.5]) == pytest.approx(0.5 / 2 + 0.5 / 3)
    assert others([2.0, 0.5], 0) == [0.5, 1.0]
    assert others([0.5, 2.0], 0) == [2.0, 0.0]


def test_a_forged_count_costs_no_time() -> None:
    assert 0 < mean_part([1e9]) < 0.05


def test_many_processes_of_many_jobs_cost_no_time() -> None:
    """Jobs with 32 processes each held the watchdog for seconds at each poll."""
    assert mean_part([32.0] * 300) == pytest.approx(1 / 9601)


def test_a_rounding_error_below_zero_is_nothing() -> None:
    assert mean_part([-1e-15]) == 1
