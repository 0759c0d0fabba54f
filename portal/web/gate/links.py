"""URLs of apps: with a ticket, and public ones."""

from __future__ import annotations

from urllib.parse import urlencode

from portal.core.apps.access import AppLink
from portal.web.context import services

ENTER = "/.slipway/enter"


def enter_url(link: AppLink, target: str | None = None) -> str:
    """The URL that exchanges a ticket for a cookie and redirects to the app's path `target`."""
    query = {"ticket": link.ticket} | ({"next": target} if target else {})
    origin = services().settings.web.app_url(link.label)
    return f"{origin}{ENTER}?{urlencode(query)}"


def open_url(link: AppLink) -> str:
    """The URL of a public app, without a ticket."""
    return services().settings.web.app_url(link.label) + link.path
