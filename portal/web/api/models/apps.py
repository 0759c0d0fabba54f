"""Response models for the apps of a session."""

from __future__ import annotations

from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.origins import Origins
from portal.core.session.end_reasons import app_trouble
from portal.web.api.models.base import ResponseModel, Time


class AppOut(ResponseModel):
    """An app that a session offers."""

    name: str
    title: str
    """Its owner's title for it, or its own."""
    state: AppState | None
    """Null until it has been opened."""
    message: str
    """Why it failed, or that it does not respond yet."""
    log: str
    """The last lines of its log, if there is a message."""
    url: str | None
    """Its address once it has been opened; the address alone grants no access."""
    public: bool
    """Whether anyone who knows the address may use it."""
    public_since: Time | None
    still_open: bool
    """Whether access was revoked, but the proxy has not confirmed it yet."""

    @classmethod
    def of(
        cls,
        app: AppSpec,
        opened: OpenApp | None,
        server: OpenApp | None,
        origins: Origins | None = None,
    ) -> AppOut:
        """Build it; `server` is the entry of the app whose process serves this one."""
        title = (opened.title if opened else "") or app.title
        trouble = trouble_of(title, server)
        since = opened.public_since if opened else None
        return cls(
            name=app.name,
            title=title,
            state=server.state if server else None,
            message=trouble,
            log=server.log if server and trouble else "",
            url=app_address(app, opened, origins),
            public=since is not None,
            public_since=since,
            still_open=opened is not None and opened.still_open,
        )


def trouble_of(title: str, server: OpenApp | None) -> str:
    """Why an app failed, or that it does not respond yet; "" without a problem."""
    if server is None:
        return ""
    if server.state is AppState.FAILED:
        return app_trouble(title, server.message)
    slow = server.state is AppState.STARTING and server.message
    return f"{server.message}." if slow else ""


def app_address(app: AppSpec, opened: OpenApp | None, origins: Origins | None) -> str | None:
    """The address of an app, without a ticket; None until it has been opened."""
    if opened is None or origins is None or app.kind != "web":
        return None
    return origins.url(opened.label) + app.path


class OpenAppOut(ResponseModel):
    """An opened app and its address."""

    url: str
    """Admits one browser, once, within a minute."""
    port: int
    public: bool
    public_url: str | None
    """The public address, while the app is public."""
    state: AppState
    notice: str
    """A notice for its owner, for example that the preferred port was taken."""
