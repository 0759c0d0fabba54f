"""The tests of services.notices.test_notices, on PostgreSQL."""

from tests.unit.services.notices.test_notices import *  # noqa: F403
