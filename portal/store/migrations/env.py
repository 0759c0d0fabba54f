"""Alembic's entry point: runs the migrations with the stores' engine settings."""

from alembic import context
from sqlmodel import SQLModel

from portal.store import tables
from portal.store.engine import open_database
from portal.store.tables.changes import install_triggers

assert tables.SessionRow.metadata is SQLModel.metadata  # noqa: S101  # importing it filled it

engine = open_database(context.config.get_main_option("sqlalchemy.url") or "")
with engine.connect() as connection:
    if connection.dialect.name == "sqlite":
        # The sorting of millions of rows for an index would take as much memory otherwise.
        # Not by SQLAlchemy, which would begin a transaction that Alembic then leaves to others.
        connection.connection.cursor().execute("PRAGMA temp_store=FILE")
    context.configure(
        connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()
    # Not in a migration, since one that replaces a table drops its triggers.
    install_triggers(connection)
    connection.commit()
engine.dispose()
