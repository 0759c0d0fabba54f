"""The benchmark of many jobs runs, and measures what it says."""

from __future__ import annotations

from bench.jobs import QUERIES, line, measure
from portal.adapters.slurm.queue import squeue_parse
from portal.core.cluster.job_reports import JobState


def test_the_made_up_output_is_squeues() -> None:
    waiting, running = squeue_parse(f"{line(7)}\n{line(40)}\n")
    assert (waiting.report.state, waiting.report.start) == (JobState.PENDING, None)
    assert (running.report.state, running.report.nodes) == (JobState.RUNNING, ("node0040",))


def test_it_measures_a_small_cluster() -> None:
    found = measure(200, 300, 5, 1)
    assert {"poll", "store", "plain", *QUERIES} <= found.keys()
    assert all(milliseconds >= 0 for milliseconds in found.values())
