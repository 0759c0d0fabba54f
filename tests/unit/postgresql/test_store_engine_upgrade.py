"""The tests of store.test_engine_upgrade, on PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import NullPool, create_engine

from portal.store.engine import upgrade
from tests.support.paths import RELEASE_0_2_0
from tests.support.postgresql import PostgreSQL
from tests.unit.store.test_engine_upgrade import (
    test_an_older_schema_is_refused_and_unchanged,
    test_it_becomes_the_schema_of_this_release,
    test_its_rows_stay_as_they_were,
    test_the_stores_read_them,
    test_this_releases_schema_is_that_of_the_models,
)

__all__ = [
    "test_an_older_schema_is_refused_and_unchanged",
    "test_it_becomes_the_schema_of_this_release",
    "test_its_rows_stay_as_they_were",
    "test_the_stores_read_them",
    "test_this_releases_schema_is_that_of_the_models",
]


@pytest.fixture
def recorded(postgresql: PostgreSQL) -> str:
    """The database of release 0.2.0."""
    url = postgresql.new_database(empty=True)
    connection = create_engine(url, poolclass=NullPool).raw_connection()
    connection.cursor().execute((RELEASE_0_2_0 / "postgresql.sql").read_text(encoding="utf-8"))
    connection.commit()
    connection.close()
    return url


@pytest.fixture
def fresh(postgresql: PostgreSQL) -> str:
    """A database that this release has created."""
    url = postgresql.new_database(empty=True)
    upgrade(url)
    return url
