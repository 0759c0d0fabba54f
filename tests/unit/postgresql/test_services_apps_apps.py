"""The tests of services.apps.test_apps, on PostgreSQL."""

from tests.unit.services.apps.test_apps import *  # noqa: F403
