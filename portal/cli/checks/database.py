"""The database: its URL and driver, whether it answers, and its schema."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from portal.cli.findings import Finding, warn
from portal.config import Settings
from portal.errors import DatabaseUnavailable
from portal.store.engine import OLDEST_RELEASE, is_known, is_too_old, newest, open_database
from portal.store.jobs.size import JOB_BYTES
from portal.store.jobs.store import JobStore
from portal.store.urls import DatabaseUrlError, check_url
from portal.wiring import workers_of

STALE_SECONDS = 30.0
"""A worker renews its lease every second, and with SQLite every ten seconds."""


def check_database(url: str) -> Iterator[Finding]:
    """Check URL, file, connection and schema revision."""
    try:
        check_url(url)
    except DatabaseUrlError as error:
        yield Finding(False, error.text)
        return
    parsed = make_url(url)
    name = parsed.render_as_string(hide_password=True)
    # Connecting would create an empty file.
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        yield Finding(False, f"{parsed.database}: there is no database yet; run `slipway init`")
        return
    engine = open_database(url)
    try:
        with engine.connect().execution_options(read_only=True) as connection:
            revision = MigrationContext.configure(connection).get_current_revision()
    except (SQLAlchemyError, DatabaseUnavailable) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        lines = str(cause).strip().splitlines() or [""]
        yield Finding(False, f"the database {name} does not answer: {lines[0]}")
        return
    finally:
        engine.dispose()
    yield _revision(revision)


def check_hosts(settings: Settings) -> Iterator[Finding]:
    """Check the worker that acts for the site, and with several hosts, each host.

    check_worker (running.py) reports if no worker runs.
    """
    state = settings.state
    try:
        check_url(state.database_url)
        file = make_url(state.database_url).database or ""
        if state.database_url.startswith("sqlite") and not Path(file).exists():
            return
        holder, hosts = workers_of(settings)
    except (DatabaseUrlError, SQLAlchemyError, DatabaseUnavailable):
        return  # reported by check_database
    if holder is not None and holder.silent > STALE_SECONDS:
        yield warn(f"the last worker was on {holder}, and is silent for {holder.silent:.0f} s")
    elif holder is not None:
        yield Finding(True, f"the worker runs on {holder}")
    if not state.several_hosts:
        return
    if state.this_host not in {host.name for host in hosts}:
        yield warn(f"this host, {state.this_host}, is not known yet: start slipway-worker")
    for host in hosts:
        if host.is_open:
            yield Finding(True, f"host {host.name} follows the database")
        else:
            text = f"host {host.name} is shut off from apps: it is silent for {host.silent:.0f} s"
            yield warn(f"{text}; see its slipway-worker")


def check_jobs(store: JobStore, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Say what `batch.jobs_days` needs at the present rate of jobs."""
    size, days = store.size(now), settings.batch.jobs_days
    most = size.ended_in_a_day * days
    yield Finding(
        True,
        f"the database has {size.rows} jobs, and {_megabytes(size.database_bytes)} in all; "
        f"{size.ended_in_a_day} jobs and tasks ended within a day: with batch.jobs_days = {days} "
        f"at most {most} are kept, which need {_megabytes(most * JOB_BYTES)}",
    )


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB"


def _revision(current: str | None) -> Finding:
    if current == newest():
        return Finding(True, f"the database has this release's schema ({current})")
    if current is None:
        return Finding(False, "the database is empty: run `slipway init`")
    if is_too_old(current):
        return Finding(
            False,
            f"the database's schema, {current}, is older than that of release {OLDEST_RELEASE}: "
            f"install {OLDEST_RELEASE} and run `slipway init`, then install this release",
        )
    if is_known(current):
        return Finding(
            False,
            f"the database's schema is {current}, this release's {newest()}: run `slipway init`, "
            "which migrates it, after a backup",
        )
    return Finding(
        False,
        f"the database's schema, {current}, is of a newer release than this one ({newest()}): "
        "install that release, or restore the backup from before it",
    )
