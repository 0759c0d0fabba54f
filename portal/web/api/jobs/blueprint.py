"""The blueprint of all that the REST API says and does about jobs."""

from __future__ import annotations

from portal.web.api import guarded

blueprint = guarded("jobs")
