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
    state: AppState | None
    """Null until it has been opened."""
    message: str
    """Why it failed."""
    log: str
    """The last lines of its log, when it failed."""
    url: str | None
    """Its address once it has been opened; the address alone grants no access."""
    public: bool
    """Whether anyone who knows the address may use it."""
    public_since: Time | None
    still_open: bool
    """Access was revoked, but the proxy has not confirmed it yet."""

    @classmethod
    def of(
        cls,
        app: AppSpec,
        opened: OpenApp | None,
        server: OpenApp | None,
        origins: Origins | None = None,
    ) -> AppOut:
        """Build it; `server` is the entry of the app whose process serves this one."""
        failed = server is not None and server.state is AppState.FAILED
        since = opened.public_since if opened else None
        return cls(
            name=app.name,
            title=app.title,
            state=server.state if server else None,
            message=app_trouble(app.title, server.message) if server and failed else "",
            log=server.log if server and failed else "",
            url=app_address(app, opened, origins),
            public=since is not None,
            public_since=since,
            still_open=opened is not None and opened.still_open,
        )


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
