"""Authentication of JupyterHub's users by the portal, with the login node's password."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyterhub import handlers
from jupyterhub.auth import Authenticator
from jupyterhub.handlers import BaseHandler
from tornado.httputil import HTTPServerRequest
from tornado.web import HTTPError
from traitlets import Bool, Integer, Unicode

from portal.client import NoAnswer, Refused
from portal.core.auth.logins import HUB
from portal.hub.clients import client_headers
from portal.hub.connection import ask, ask_for_login, connection
from portal.hub.revoking import Revocations

TOKEN = "slipway_token"  # noqa: S105
"""Key of the user's token in auth_state."""
WRONG = frozenset({401, 422})
"""Statuses of a wrong password; 403: the portal accepts no passwords, as its text says."""
PATIENCE = 5.0
"""Seconds for which a logout waits for the portal."""


class LogoutHandler(handlers.LogoutHandler):  # type: ignore[misc]  # JupyterHub has no types
    """Logs a user out of JupyterHub, and JupyterHub out of the portal."""

    async def handle_logout(self) -> None:
        """Log the user of this browser out; tokens of servers are not affected."""
        await super().handle_logout()
        if (user := self.get_current_user_cookie()) is not None:
            await self.authenticator.log_out(user)


class SlipwayAuthenticator(Authenticator):  # type: ignore[misc]  # JupyterHub has no types
    """The portal checks the password, and returns a token of the user.

    The token is in auth_state, which JupyterHub encrypts with $JUPYTERHUB_CRYPT_KEY. If the portal
    accepts no passwords (oidc.password = false), use an authenticator for the same OpenID
    provider, and a service token of the portal for the spawner.
    """

    portal_url = Unicode(help="Address of the portal.").tag(config=True)
    verify = Unicode("", help="File of the authority of the portal's certificate (PEM).").tag(
        config=True
    )
    front_end_token_file = Unicode(
        "",
        help="File with the content of [hub] front_end_token_file of the portal's settings: proves "
        "that the portal may count wrong passwords for the client that JupyterHub names.",
    ).tag(config=True)
    token_days = Integer(7, min=1, help="Lifetime of users' tokens in days.").tag(config=True)
    token_name = Unicode(
        "JupyterHub",
        help="Name of users' tokens: a log-in replaces the earlier one of that name, so each "
        "JupyterHub at a portal needs its own.",
    ).tag(config=True)
    enable_auth_state = Bool(True, help="Needed: it has the user's token.").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._revocations = Revocations(lambda: connection(self.portal_url, self.verify), self.log)

    async def authenticate(
        self, handler: BaseHandler, data: dict[str, str]
    ) -> dict[str, Any] | None:
        """The user's name and token; None for a wrong password."""
        client = connection(self.portal_url, self.verify)
        fields: dict[str, Any] = {"name": self.token_name, "purpose": HUB, "days": self.token_days}
        if code := data.get("otp"):  # shown with c.Authenticator.request_otp
            fields["code"] = code
        name, password = data.get("username", ""), data.get("password", "")
        headers = self._client_headers(handler.request)
        try:
            token = await ask_for_login(client.make_token, name, password, headers, **fields)
            name = await ask(client.acting_for(token).account)
        except Refused as error:
            if error.status in WRONG:
                return None
            raise HTTPError(error.status, error.text, reason=_one_line(error.text)) from error
        except NoAnswer as error:
            raise HTTPError(503, error.text, reason=error.text) from error
        return {"name": name, "auth_state": {TOKEN: token}}

    def _client_headers(self, request: HTTPServerRequest) -> dict[str, str]:
        try:
            headers = client_headers(request, self.front_end_token_file)
        except (OSError, ValueError) as error:
            self.log.error("front_end_token_file: %s", error)
            text = "JupyterHub cannot read its own front_end_token_file."
            raise HTTPError(503, text, reason=text) from error
        if self.front_end_token_file and not headers:
            self.log.warning("The proxy names no client: this log-in counts as JupyterHub's own")
        return headers

    def get_handlers(self, app: Any) -> list[tuple[str, Any]]:
        """JupyterHub's handlers, and one that revokes the token of users who log out."""
        return [*super().get_handlers(app), ("/logout", LogoutHandler)]

    async def log_out(self, user: Any) -> None:
        """Delete the user's token and revoke it, at the latest a minute after an outage."""
        state = await user.get_auth_state() or {}
        token = state.pop(TOKEN, None)
        if token is None:
            return
        await user.save_auth_state(state or None)
        await asyncio.wait({self._revocations.add(token)}, timeout=PATIENCE)

    def normalize_username(self, username: str) -> str:
        """The name with its case unchanged, since the cluster distinguishes case."""
        return str(self.username_map.get(username, username))

    async def refresh_user(self, user: Any, handler: BaseHandler | None = None) -> bool:
        """Whether the user's token is still valid; otherwise they log in again."""
        state = await user.get_auth_state()
        if not state or TOKEN not in state:
            return False
        client = connection(self.portal_url, self.verify).acting_for(state[TOKEN])
        try:
            await ask(client.sessions, limit=1)
        except Refused as error:
            return error.status != 401
        except NoAnswer:
            pass  # users stay logged in during an outage of the portal
        return True


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
