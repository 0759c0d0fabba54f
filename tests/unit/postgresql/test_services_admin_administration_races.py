"""The tests of services.admin.test_administration_races, on PostgreSQL."""

from tests.unit.services.admin.test_administration_races import *  # noqa: F403
