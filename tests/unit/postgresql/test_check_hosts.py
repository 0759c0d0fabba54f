"""`slipway check` shows the worker that acts for all hosts, and each host."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import Session as Database

from portal.cli.checks.database import check_hosts
from portal.cli.worker import OnlyOneHost, run_worker
from portal.config import Settings
from portal.store.engine import open_database
from portal.store.hosts import HostStore, LeaseStore
from portal.store.tables import LeaseRow


def settings(url: str, folder: Path, **state: str) -> Settings:
    values = {"database": url, "directory": str(folder), "run": str(folder), "host_name": "a"}
    return Settings.model_validate({"state": values | state})


def said(found: Settings) -> list[str]:
    return [f"{finding.word} {finding.text}" for finding in check_hosts(found)]


def test_a_site_before_its_first_start(url: str, tmp_path: Path) -> None:
    assert said(settings(url, tmp_path)) == [
        "WARNING this host, a, is not known yet: start slipway-worker",
    ]


def test_two_hosts(url: str, tmp_path: Path) -> None:
    engine = open_database(url)
    lease, hosts = LeaseStore(engine), HostStore(engine)
    assert lease.acquire("b", 77)
    for name in ("a", "b"):
        hosts.report(name, name)
    worker, *others = said(settings(url, tmp_path))
    assert worker.startswith("ok the worker runs on b (process 77) since 20")
    assert others == ["ok host a follows the database", "ok host b follows the database"]
    with Database(engine) as db:
        row = db.get_one(LeaseRow, 1)
        row.renewed = row.since - timedelta(minutes=1)
        db.add(row)
        db.commit()
    worker, *others = said(settings(url, tmp_path))
    assert worker.startswith("WARNING the last worker was on b (process 77)")
    engine.dispose()


def test_a_host_that_is_shut_off_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_database(url)
    HostStore(engine).report("b", "b")
    engine.dispose()
    monkeypatch.setattr("portal.core.hosts.SHUT_SECONDS", -1.0)
    assert any("host b is shut off from apps" in line for line in said(settings(url, tmp_path)))


def test_two_hosts_that_believe_to_be_one(url: str, tmp_path: Path) -> None:
    """Their HAProxys would not be told of each other's revocations."""
    engine = open_database(url)
    assert LeaseStore(engine).acquire("b", 77)
    engine.dispose()
    with pytest.raises(OnlyOneHost, match=r"a worker runs on b .*several"):
        run_worker(settings(url, tmp_path, hosts="one"))
