"""The tests of services.test_notices, on PostgreSQL."""

from tests.unit.services.test_notices import *  # noqa: F403
