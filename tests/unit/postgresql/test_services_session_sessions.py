"""The tests of services.session.test_sessions, on PostgreSQL."""

from tests.unit.services.session.test_sessions import *  # noqa: F403
