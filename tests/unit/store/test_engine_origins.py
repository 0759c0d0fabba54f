"""The migration to origins converts existing ports and tickets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text
from sqlmodel import Session as Database
from sqlmodel import select

from portal.store.engine import MIGRATIONS, open_database, upgrade
from portal.store.tables import OriginRow, TicketRow


def test_existing_ports_count_as_shared(tmp_path: Path) -> None:
    """H1: their earlier owners are unknown; losing the tickets costs a minute."""
    url = f"sqlite:///{tmp_path}/slipway.db"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url)
    command.upgrade(config, "0007")
    with create_engine(url).begin() as old:
        old.execute(text("INSERT INTO port VALUES (10001, 'alice', '2026-11-20 12:00:00')"))
        old.execute(
            text(
                "INSERT INTO ticket (hash, label, user, login, expires) "
                "VALUES ('h', '10001', 'alice', 'l', '2026-11-20 12:00:00')"
            )
        )
    upgrade(url)
    with Database(open_database(url)) as db:
        row = db.exec(select(OriginRow)).one()
        assert (row.label, row.owner, row.is_port, row.shared) == ("10001", "alice", True, True)
        assert row.mark
        assert row.used == datetime(2026, 11, 20, 12, tzinfo=UTC)
        assert db.exec(select(TicketRow)).all() == []
