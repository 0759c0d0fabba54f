"""A database of a large centre's size, filled by a few statements."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, Table, text
from sqlmodel import Session as Database
from sqlmodel import SQLModel

from portal.core.apps.access import AppState
from portal.core.auth.logins import MAX_TOKENS
from portal.core.cluster.inventory import Node, NodeGpus, Partition
from portal.core.cluster.limits import Association, Limits, NodeFeatures, PartitionAccess, Qos
from portal.core.cluster.node_use import measure_nodes
from portal.core.cluster.rules.reservations import Reservation
from portal.core.cluster.usage import measure_usage
from portal.core.jobs.compose.drafts import Shared
from portal.core.jobs.job import Job
from portal.core.launch.presets import MAX_PRESETS
from portal.store.tables import (
    AppRow,
    AuditRow,
    FolderShareRow,
    JobRow,
    JobTemplateRow,
    JobTextRow,
    LoginRow,
    PresetRow,
    SessionRow,
)
from tests.support.fakes import World
from tests.support.stored_jobs import job, store_jobs
from tests.support.stored_sessions import ended_session

NODES, JOBS, SESSIONS, PEOPLE = 10_000, 100_000, 100_000, 10_000
PARTITIONS, ACCOUNTS, QOSES, KINDS = 40, 200, 60, 30
LIVE = 5_000
"""Sessions that run."""


_PRESET = '{"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}'


def fill(world: World, scale: int = 1) -> None:
    """Fill the database and have Slurm's reports stored; `scale` divides the sizes."""
    now = world.clock()
    people, nodes = PEOPLE // scale, NODES // scale
    _report(world, now, people, nodes)
    _jobs(world, now, JOBS // scale, people, nodes)
    _sessions(world, now, SESSIONS // scale, people, LIVE // scale)
    _people(world.engine, now, people)


def _report(world: World, now: datetime, people: int, nodes: int) -> None:
    """What the worker stores about the cluster: limits, partitions and the use of each node."""
    partitions = [f"part{number}" for number in range(PARTITIONS)]
    features = [(f"kind{number}", "ib", f"rack{number % 7}") for number in range(KINDS)]
    accounts = [Association(f"acc{number}", parent="root") for number in range(ACCOUNTS)]
    links = [
        Association(f"acc{number % ACCOUNTS}", name_of(number), qos=("normal", "qos1"))
        for number in range(people)
    ]
    alice = [Association(f"acc{number}", "alice", qos=("normal",)) for number in range(20)]
    world.status.save_limits(
        Limits(
            associations=(*accounts, *links, *alice),
            qos=(Qos("normal"), *(Qos(f"qos{number}") for number in range(1, QOSES))),
            partitions=tuple(PartitionAccess(name) for name in partitions),
            default_accounts={
                name_of(number): f"acc{number % ACCOUNTS}" for number in range(people)
            }
            | {"alice": "acc0"},
            features=tuple(
                NodeFeatures(node_name(number), partition, features[number % KINDS])
                for number in range(nodes)
                for partition in sorted({partitions[number % PARTITIONS], "part0"})
            ),
            reservations=tuple(
                Reservation(
                    f"maint{number}", now, now + timedelta(days=1), nodes=(node_name(number),)
                )
                for number in range(50)
            ),
        )
    )
    world.status.save_partitions(
        [Partition(name, name == "part0", True, 128, 512_000, 1440) for name in partitions]
    )
    inventory = [
        Node(node_name(number), partition, 128, 512_000, number % 75 > 0, (NodeGpus("", 4),))
        for number in range(nodes)
        for partition in sorted({partitions[number % PARTITIONS], "part0"})
    ]
    jobs = [_running(number, now, people, nodes).report for number in range(2 * nodes)]
    world.status.save_use(measure_usage(jobs, inventory))
    world.status.nodes.save(measure_nodes(jobs, inventory))
    world.status.note_answer(now)


def name_of(number: int) -> str:
    """The name of a person."""
    return f"person{number}"


def node_name(number: int) -> str:
    """The name of a node."""
    return f"node{number:05}"


def _running(number: int, now: datetime, people: int, nodes: int) -> Job:
    return job(
        1_000_000 + number,
        now,
        name_of(number % people),
        state="RUNNING",
        nodes=(node_name(number % nodes),),
        partition="part0",
        cpus=32,
        memory_mb=64_000,
        account=f"acc{number % ACCOUNTS}",
    )


def _jobs(world: World, now: datetime, count: int, people: int, nodes: int) -> None:
    """Most of them wait; their rows are copies of those of three jobs."""
    owner, account = f"'person' || (n % {people})", f"'acc' || (n % {ACCOUNTS})"
    for state, part, first in (("PENDING", 0.6, 2), ("RUNNING", 0.1, 4), ("COMPLETED", 0.3, 6)):
        model = job(first * 10_000_000, now, state=state, partition="part1")
        store_jobs(world, model)
        number = f"{model.id} + 1 + n"
        with Database(world.engine) as db:
            row, texts = db.get_one(JobRow, int(model.id)), db.get_one(JobTextRow, int(model.id))
        columns = {"owner": owner, "account": account, "number": number}
        name = {"name": "'job' || n", "name_key": "'job' || n"}
        where = {"partition": f"'part' || (n % {PARTITIONS})"}
        copy(world.engine, row, int(count * part), **columns, **name, **where)
        copy(world.engine, texts, int(count * part), number=number)


def _sessions(world: World, now: datetime, count: int, people: int, live: int) -> None:
    owner = f"'person' || (n % {people})"
    for state, number in (("RUNNING", live), ("FINISHED", count - live)):
        over = state == "FINISHED"
        model = ended_session(
            id=("f" if over else "e") * 32,
            state=state,
            created=now - timedelta(hours=2),
            started=now - timedelta(hours=1),
            ended=now if over else None,
            cause="time_limit" if over else None,
            deadline=now + timedelta(hours=1),
            apps=("jupyterlab",),
        )
        world.store.add([model], None, "", {})
        with Database(world.engine) as db:
            row = db.get_one(SessionRow, model.id)
        prefix = "printf('%031x', n) || " + ("'f'" if over else "'e'")
        names = {"name": "'session' || n", "job_id": "n + 1000000", "node": "'node' || n"}
        kinds = {"partition": f"'part' || (n % {PARTITIONS})"}
        copy(world.engine, row, number, id=prefix, owner=owner, **names, **kinds)
        if not over:
            app = AppRow(session=model.id, app="jupyterlab", label="label", state=AppState.READY)
            copy(world.engine, app, number, session=prefix, label="'label' || n")


def _people(engine: Engine, now: datetime, people: int) -> None:
    owner = f"'person' || (n % {people})"
    for kind, each in (("browser", 1), ("token", 2)):
        login = LoginRow(
            hash=kind, id=kind, kind=kind, user="alice", name="a name", created=now, used=now,
            expires=now + timedelta(days=30), address="192.0.2.1",
        )  # fmt: skip
        text = f"'{kind}' || n"
        copy(engine, login, each * people, hash=text, id=text, user=owner)
    token = LoginRow(
        hash="mine", id="mine", kind="token", user="alice", name="a name", created=now, used=now,
        expires=now + timedelta(days=30),
    )  # fmt: skip
    copy(engine, token, MAX_TOKENS - 10, hash="'mine' || n", id="'mine' || n")
    event = AuditRow(id=10_000_000, time=now, who="alice", action="session.launch", target="x")
    copy(engine, event, 10 * people, id="n + 1000", who=owner, detail="'session' || n")
    preset = PresetRow(owner="alice", name="0", request=_PRESET, saved=now)
    copy(engine, preset, MAX_PRESETS - 1, name="'preset ' || n")
    template = JobTemplateRow(
        owner="bob", name="model", request="{}", script="#!/bin/sh\n", shared=Shared.SITE,
        saved=now,
    )  # fmt: skip
    copy(engine, template, people, owner=owner, name="'template ' || n")
    share = FolderShareRow(
        owner="bob", folder="data", kind="user", name="alice", access="read", state="given",
        created=now,
    )  # fmt: skip
    copy(engine, share, people, owner=owner)


def copy(engine: Engine, row: SQLModel, count: int, **columns: str) -> None:
    """Store a row `count` times; each column as SQL of its number `n`, which begins at 0."""
    table = _table(row)
    names = [column.name for column in table.columns if column.name in columns] + [
        column.name for column in table.columns if column.name not in columns
    ]
    quoted = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(columns.get(name, f't."{name}"') for name in names)
    identity = dict(zip(table.primary_key.columns.keys(), _identity(row), strict=True))
    where = " AND ".join(f't."{name}" = :{name}' for name in identity)
    numbers = "WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n + 1 < :count)"
    rows = f'SELECT {values} FROM s, "{table.name}" t WHERE {where}'
    statement = f'INSERT INTO "{table.name}" ({quoted}) {numbers} {rows}'
    with Database(engine) as db:
        db.merge(row)
        db.flush()
        db.execute(text(statement), {"count": count, **identity})
        db.commit()


def _table(row: SQLModel) -> Table:
    return SQLModel.metadata.tables[str(row.__tablename__)]


def _identity(row: SQLModel) -> list[Any]:
    return [getattr(row, column.key) for column in _table(row).primary_key.columns]
