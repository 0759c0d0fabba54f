"""Logs users of JupyterHub in with the password of the login node, through the portal."""

from __future__ import annotations

from typing import Any

from jupyterhub.auth import Authenticator
from jupyterhub.handlers import BaseHandler
from tornado.web import HTTPError
from traitlets import Bool, Integer, Unicode

from portal.client import NoAnswer, Refused
from portal.hub.connection import ask, connection

TOKEN = "slipway_token"  # noqa: S105
"""Where auth_state has the user's token."""
WRONG = frozenset({401, 422})
"""Statuses of a wrong password; 403 is a portal that accepts none, which its text says."""


class SlipwayAuthenticator(Authenticator):  # type: ignore[misc]  # JupyterHub has no types
    """The portal checks the password, and answers with a token of the user's own.

    The token is in auth_state, which JupyterHub encrypts with $JUPYTERHUB_CRYPT_KEY. Where the
    portal accepts no passwords (oidc.password = false), use an authenticator for the same OpenID
    provider, and a service token of the portal's for the spawner.
    """

    portal_url = Unicode(help="Address of the portal.").tag(config=True)
    verify = Unicode("", help="File of the authority of the portal's certificate (PEM).").tag(
        config=True
    )
    token_days = Integer(7, min=1, help="Lifetime of users' tokens in days.").tag(config=True)
    enable_auth_state = Bool(True, help="Needed: it has the user's token.").tag(config=True)

    async def authenticate(
        self, handler: BaseHandler, data: dict[str, str]
    ) -> dict[str, Any] | None:
        """The user's name and token; None for a wrong password."""
        client = connection(self.portal_url, self.verify)
        name, password = data.get("username", ""), data.get("password", "")
        code = data.get("otp", "")  # shown with c.Authenticator.request_otp
        try:
            token = await ask(
                client.make_token, name, password, "JupyterHub", self.token_days, code
            )
            name = await ask(client.acting_for(token).account)
        except Refused as error:
            if error.status in WRONG:
                return None
            raise HTTPError(error.status, error.text, reason=_one_line(error.text)) from error
        except NoAnswer as error:
            raise HTTPError(503, error.text, reason=error.text) from error
        return {"name": name, "auth_state": {TOKEN: token}}

    def normalize_username(self, username: str) -> str:
        """The name as the cluster writes it: capitals matter there."""
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
            pass  # nobody is logged out because the portal is away
        return True


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
