"""Jobs over the REST API: one blueprint, whose views are in the modules here."""

from __future__ import annotations

from portal.web.api.jobs import output, views
from portal.web.api.jobs.blueprint import blueprint

__all__ = ["blueprint", "output", "views"]
