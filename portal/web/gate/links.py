"""The address at which a browser exchanges its ticket for an app's cookie."""

from __future__ import annotations

from urllib.parse import urlencode

from portal.services.apps.apps import AppLink
from portal.web.context import services

ENTER = "/.slipway/enter"


def enter_url(link: AppLink, target: str | None = None) -> str:
    """Where to send a browser; `target` is the path at the app to go on to."""
    query = {"ticket": link.ticket} | ({"next": target} if target else {})
    origin = services().settings.web.app_url(link.label)
    return f"{origin}{ENTER}?{urlencode(query)}"


def open_url(link: AppLink) -> str:
    """The same app's address for those who need no ticket, as it is open to everybody."""
    return services().settings.web.app_url(link.label) + link.path
