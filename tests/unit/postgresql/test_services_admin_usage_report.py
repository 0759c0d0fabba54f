"""The tests of services.admin.test_usage, on PostgreSQL."""

from tests.unit.services.admin.test_usage_report import *  # noqa: F403
