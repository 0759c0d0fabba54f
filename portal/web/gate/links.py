"""Addresses of apps: for entering with a ticket, and for everybody."""

from __future__ import annotations

from urllib.parse import urlencode

from portal.core.apps.access import AppLink
from portal.web.context import services

ENTER = "/.slipway/enter"


def enter_url(link: AppLink, target: str | None = None) -> str:
    """Where a browser exchanges its ticket; then it goes on to the path `target` of the app."""
    query = {"ticket": link.ticket} | ({"next": target} if target else {})
    origin = services().settings.web.app_url(link.label)
    return f"{origin}{ENTER}?{urlencode(query)}"


def open_url(link: AppLink) -> str:
    """The address of an app that is public, without a ticket."""
    return services().settings.web.app_url(link.label) + link.path
