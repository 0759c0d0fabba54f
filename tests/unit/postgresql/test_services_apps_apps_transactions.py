"""The tests of services.apps.test_apps_transactions, on PostgreSQL."""

from tests.unit.services.apps.test_apps_transactions import *  # noqa: F403
