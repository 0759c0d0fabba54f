"""The portal's catalog of images and apps on a running cluster."""

from __future__ import annotations

import time

from portal.adapters.catalog import FRESH_SECONDS


def wait_for_catalog() -> None:
    """Wait until every process of the portal has read the images and apps since a change."""
    time.sleep(FRESH_SECONDS + 0.5)
