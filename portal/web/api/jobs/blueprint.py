"""The blueprint of the REST API's operations on jobs."""

from __future__ import annotations

from portal.web.api import guarded

blueprint = guarded("jobs")
