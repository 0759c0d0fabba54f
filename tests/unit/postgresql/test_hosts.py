"""Several hosts on one database: revocations are told, the worker's lease is held by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session as Database

from portal.core.hosts import LEASE_SECONDS, SHUT_SECONDS, Removal
from portal.core.session.idle import Traffic
from portal.lease import Lease
from portal.store.engine import open_database
from portal.store.hosts import Fence, HostStore, LeaseLost, LeaseStore
from portal.store.tables import HostRow, LeaseRow, PendingRemovalRow


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    made = open_database(url)
    yield made
    made.dispose()


@pytest.fixture
def hosts(engine: Engine) -> HostStore:
    """Two hosts that follow the database."""
    made = HostStore(engine)
    for name in ("a", "b"):
        made.report(name, f"machine of {name}")
    return made


def revoke(engine: Engine, key: str) -> None:
    with Database(engine) as db:
        db.merge(PendingRemovalRow(key=key, session="s", app="x", since=datetime.now(UTC)))
        db.commit()


def age(engine: Engine, host: str, seconds: float) -> None:
    """Let a host have been silent for so long."""
    with Database(engine) as db:
        row = db.get_one(HostRow, host)
        row.seen -= timedelta(seconds=seconds)
        db.add(row)
        db.commit()


def pending(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM shutting")).scalar() or 0)


def test_a_revocation_is_kept_until_each_host_has_confirmed(
    engine: Engine, hosts: HostStore
) -> None:
    revoke(engine, "k")
    (removal,) = hosts.view("a").pending
    assert hosts.unconfirmed([removal]) == ["a", "b"]
    hosts.confirm("a", [removal])
    hosts.settle()
    assert hosts.view("a").pending == ()
    assert hosts.view("b").pending == (removal,)
    assert hosts.unconfirmed([removal]) == ["b"]
    assert pending(engine) == 1
    hosts.confirm("b", [removal])
    hosts.confirm("b", [removal])
    assert hosts.unconfirmed([removal]) == []
    hosts.settle()
    assert pending(engine) == 0
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM removed")).scalar() == 0


def test_a_silent_host_is_counted_as_shut_off_and_counts_again(
    engine: Engine, hosts: HostStore
) -> None:
    revoke(engine, "k")
    (removal,) = hosts.view("a").pending
    hosts.confirm("a", [removal])
    age(engine, "b", SHUT_SECONDS - 4.0)
    assert hosts.unconfirmed([removal]) == ["b"]
    # It has to compare everything a second before others stop waiting for it.
    assert hosts.view("b").is_counted_on
    age(engine, "b", 3.2)
    assert not hosts.view("b").is_counted_on
    age(engine, "b", 1.0)
    assert hosts.unconfirmed([removal]) == []
    hosts.report("b", "machine of b")
    assert hosts.unconfirmed([removal]) == ["b"]
    assert not hosts.view("c").is_counted_on


def test_a_second_revocation_of_a_key_is_told_again(engine: Engine, hosts: HostStore) -> None:
    """It was opened in between, so that an earlier confirmation says nothing."""
    revoke(engine, "k")
    (first,) = hosts.view("a").pending
    hosts.confirm("a", [first])
    revoke(engine, "k")
    (second,) = hosts.view("a").pending
    assert second.since > first.since
    assert hosts.unconfirmed([second]) == ["a", "b"]
    # Whoever waits for the first one waits no longer.
    assert hosts.unconfirmed([first]) == []
    hosts.settle()
    assert pending(engine) == 1


def test_a_revocation_that_was_undone_is_waited_for_by_nobody(hosts: HostStore) -> None:
    assert hosts.unconfirmed([Removal("gone", datetime.now(UTC))]) == []


def test_reports_do_not_wait_for_a_writer(engine: Engine, hosts: HostStore) -> None:
    revoke(engine, "k")
    (removal,) = hosts.view("a").pending
    with Database(engine) as db:
        db.merge(PendingRemovalRow(key="l", session="s", app="x", since=datetime.now(UTC)))
        db.flush()
        begun = time.monotonic()
        hosts.report("a", "machine of a")
        hosts.confirm("a", [removal])
        assert hosts.unconfirmed([removal]) == ["b"]
        assert time.monotonic() - begun < 2.0
        db.rollback()


def test_traffic_of_a_host(hosts: HostStore) -> None:
    hosts.note_traffic("b", {"lab.x.slipway": Traffic(2, 300)})
    found = {host.name: host.traffic for host in hosts.hosts()}
    assert found == {"a": {}, "b": {"lab.x.slipway": Traffic(2, 300)}}


def test_many_report_at_once(engine: Engine) -> None:
    store = HostStore(engine)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _number: store.report("new", "machine"), range(16)))
    assert [host.name for host in store.hosts()] == ["new"]


# The lease


@pytest.fixture
def lease(engine: Engine) -> LeaseStore:
    return LeaseStore(engine)


def age_lease(engine: Engine, seconds: float) -> None:
    with Database(engine) as db:
        row = db.get_one(LeaseRow, 1)
        assert row.renewed is not None
        row.renewed -= timedelta(seconds=seconds)
        db.add(row)
        db.commit()


def test_one_worker_has_the_lease(engine: Engine, lease: LeaseStore) -> None:
    assert lease.holder() is None
    first = lease.acquire("a", 7)
    assert first is not None
    assert lease.acquire("b", 8) is None
    assert lease.renew(first)
    age_lease(engine, LEASE_SECONDS + 1)
    second = lease.acquire("b", 8)
    assert second == first + 1
    assert not lease.renew(first)
    lease.release(first)  # changes nothing: it is the other's
    holder = lease.holder()
    assert holder is not None
    assert (holder.host, holder.pid) == ("b", 8)
    assert str(holder).startswith("b (process 8) since 20")
    lease.release(second)
    assert lease.holder() is None
    assert lease.acquire("a", 7) == second + 1


def test_of_many_workers_one_takes_it(lease: LeaseStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        took = list(pool.map(lambda number: lease.acquire(f"h{number}", number), range(8)))
    assert len([number for number in took if number is not None]) == 1


def test_a_worker_that_lost_the_lease_writes_nothing(
    url: str, engine: Engine, lease: LeaseStore
) -> None:
    """A process that was stopped for a while, and goes on in the middle of a task."""
    fence = Fence()
    fenced = open_database(url, fence.check)

    def write(key: str) -> None:
        with Database(fenced) as db:
            db.add(PendingRemovalRow(key=key, session="s", app="x", since=datetime.now(UTC)))
            db.commit()

    with pytest.raises(LeaseLost):
        write("before")
    number = lease.acquire("a", 7)
    assert number is not None
    fence.take(number)
    write("mine")
    age_lease(engine, LEASE_SECONDS + 1)
    # A transaction that has begun is finished before the lease can be taken.
    with Database(fenced) as db:
        db.add(PendingRemovalRow(key="late", session="s", app="x", since=datetime.now(UTC)))
        db.flush()
        taken: list[int | None] = []
        other = threading.Thread(target=lambda: taken.append(lease.acquire("b", 8)))
        other.start()
        time.sleep(0.3)
        assert taken == []
        db.commit()
    other.join()
    assert taken == [number + 1]
    with pytest.raises(LeaseLost):
        write("lost")
    with fenced.execution_options(read_only=True).connect() as connection:
        found = connection.execute(text("SELECT key FROM shutting ORDER BY key")).scalars().all()
    assert list(found) == ["late", "mine"]
    fenced.dispose()


def test_a_second_worker_says_who_runs(lease: LeaseStore, caplog: pytest.LogCaptureFixture) -> None:
    def make(host: str, ended: list[str]) -> Lease:
        def lost() -> None:
            ended.append(host)

        return Lease(lease, host, lambda _number: None, fenced=True, on_lost=lost)

    ended: list[str] = []
    first, second = make("a", ended), make("b", ended)
    assert first.acquire()
    assert not second.acquire()
    assert not second.acquire()
    said = [record.message for record in caplog.records if "another worker" in record.message]
    assert len(said) == 1
    assert said[0].startswith("another worker runs on a (process ")
    assert said[0].endswith(", waiting")
    first.renew()
    assert ended == []
    first.release()
    assert second.acquire()
    first.renew()
    second.renew()
    assert ended == []


def test_a_holder_that_lost_the_lease_ends(engine: Engine, lease: LeaseStore) -> None:
    ended: list[str] = []
    first = Lease(lease, "a", lambda _number: None, fenced=True, on_lost=lambda: ended.append("a"))
    assert first.acquire()
    age_lease(engine, LEASE_SECONDS + 1)
    assert lease.acquire("b", 8)
    first.renew()
    assert ended == ["a"]


def test_a_holder_that_cannot_renew_ends_before_the_lease_is_free(
    lease: LeaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Lease(lease, "a", lambda _number: None, fenced=True, on_lost=lambda: None)
    assert first.acquire()
    begun = time.monotonic()
    clock: Callable[[], float] = lambda: begun + LEASE_SECONDS - 1.0  # noqa: E731
    assert not first.is_due()
    monkeypatch.setattr(time, "monotonic", clock)
    assert first.is_due()
