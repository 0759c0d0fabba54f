"""Alembic's entry point: runs the migrations with the stores' engine settings."""

from alembic import context
from sqlmodel import SQLModel

from portal.store import tables
from portal.store.engine import open_database

assert tables.SessionRow.metadata is SQLModel.metadata  # noqa: S101  # importing it filled it

engine = open_database(context.config.get_main_option("sqlalchemy.url") or "")
with engine.connect() as connection:
    context.configure(
        connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
engine.dispose()
