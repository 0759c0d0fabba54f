"""The tests of services.apps.test_proxy_revocation, on PostgreSQL."""

from tests.unit.services.apps.test_proxy_revocation import *  # noqa: F403
