"""What Prometheus reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.core.monitoring import Snapshot
from tests.support.metrics import SNAPSHOT, samples

NOTHING = Snapshot("1.2", (), None, None, None, None, {}, None)


def test_counts_and_times() -> None:
    measures = PrometheusMeasures()
    measures.login("ok")
    measures.login("ok")
    measures.launch("start", 2.5)
    measures.launch("queue", -1.0)  # Slurm's clock is ahead of ours
    measures.command("squeue", "unanswered", 20.0)
    measures.request("GET", "/sessions/<session_id>", 404, 0.2)
    found = samples(measures.exposition(NOTHING))
    assert found["slipway_logins_total", (("outcome", "ok"),)] == 2
    assert found["slipway_logins_total", (("outcome", "refused"),)] == 0
    assert found["slipway_launch_seconds_sum", (("phase", "start"),)] == 2.5
    assert found["slipway_launch_seconds_sum", (("phase", "queue"),)] == 0
    command = (("command", "squeue"), ("outcome", "unanswered"))
    assert found["slipway_slurm_commands_total", command] == 1
    request = (("method", "GET"), ("route", "/sessions/<session_id>"), ("status", "4xx"))
    assert found["slipway_http_requests_total", request] == 1


def test_the_snapshot() -> None:
    found = samples(PrometheusMeasures().exposition(SNAPSHOT))
    assert found["slipway_build_info", (("version", "1.2"),)] == 1
    assert found["slipway_ready", (("part", "worker"),)] == 0
    assert found["slipway_sessions", (("state", "RUNNING"),)] == 3
    assert found["slipway_sessions", (("state", "PENDING"),)] == 0
    assert found["slipway_revocations_pending", ()] == 2
    assert found["slipway_jobs_followed", ()] == 7
    assert found["slipway_nodes", (("state", "unusable"),)] == 1
    assert found["slipway_look_age_seconds", ()] == 2.5
    assert found["slipway_certificate_days", (("certificate", "server"),)] == 12.5
    assert found["slipway_state_free_bytes", ()] == 1024


def test_what_is_not_known_is_left_out() -> None:
    names = {name for name, _labels in samples(PrometheusMeasures().exposition(NOTHING))}
    assert not names & {
        "slipway_nodes",
        "slipway_sessions",
        "slipway_worker_age_seconds",
        "slipway_state_free_bytes",
    }


def test_without_a_folder_that_can_be_used_the_process_counts_for_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    measures = PrometheusMeasures(tmp_path / "file" / "metrics")
    measures.login("ok")
    assert 'slipway_logins_total{outcome="ok"} 1.0' in measures.exposition(NOTHING).decode()
    assert "each process counts for itself" in caplog.text
