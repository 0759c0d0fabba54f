"""The benchmark of the passed-through command: what it prints of its rounds."""

from __future__ import annotations

from bench.passthrough import MOST, figures


def test_the_difference_is_that_within_each_round() -> None:
    """A slow moment of the machine slows both commands of a round."""
    rounds = [
        {"sbatch": 0.010, "slipway sbatch": 0.030, "python3": 0.012},
        {"sbatch": 0.090, "slipway sbatch": 0.112, "python3": 0.080},
        {"sbatch": 0.011, "slipway sbatch": 0.032, "python3": 0.012},
    ]
    found = figures(rounds)
    assert str(found).splitlines() == [
        "sbatch            11.0 ms, fastest   10.0 ms",
        "slipway sbatch    32.0 ms, fastest   30.0 ms",
        "python3           12.0 ms, fastest   12.0 ms",
        "slipway sbatch costs 21.0 ms more, fastest 20.0 ms (at most 30 ms)",
    ]
    assert found.least < MOST
