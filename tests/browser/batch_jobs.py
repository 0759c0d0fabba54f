"""A researcher with batch jobs: her API client and her browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import LogIn
from tests.slurm.conftest import MakeApi
from tests.support.batch_jobs import cancel
from tests.support.client import Api
from tests.support.cluster import Cluster

WHO = "alice"


@pytest.fixture
def api(cluster: Cluster, make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client; her jobs end with the test."""
    yield make_api(WHO)
    cancel(cluster, WHO)


@pytest.fixture
def page(log_in: LogIn) -> Page:
    """The researcher's browser."""
    return log_in(WHO)
