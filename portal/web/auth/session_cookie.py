"""Reads the session cookie among duplicates that other origins may have planted.

Ports do not separate cookies, nor does a name prefix on plain http. A cookie that was planted for
a deeper path comes first there and is not sent to /login: if only the first one counted, the two
would redirect to each other for ever. So all are tried: a login at /login is valid everywhere.
"""

from __future__ import annotations

from flask import Flask, Request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import BadSignature

from portal.core.auth.logins import BROWSER
from portal.web.context import services


class SessionCookie(SecureCookieSessionInterface):
    """Flask's sessions: the last cookie that belongs to a login, else the last valid one."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the session of a request."""
        values = dict.fromkeys(request.cookies.getlist(self.get_cookie_name(app)))
        sessions = [valid for value in values if (valid := self._valid(app, value)) is not None]
        if len(sessions) < 2:
            return sessions[0] if sessions else self.session_class()
        return next(filter(_has_login, reversed(sessions)), sessions[-1])

    def _valid(self, app: Flask, value: str) -> SecureCookieSession | None:
        signer = self.get_signing_serializer(app)
        if signer is None:
            return None
        try:
            age = int(app.permanent_session_lifetime.total_seconds())
            return self.session_class(signer.loads(value, max_age=age))
        except BadSignature:
            return None


def _has_login(session: SecureCookieSession) -> bool:
    secret = session.get("_user_id")  # Flask-Login's
    return isinstance(secret, str) and services().logins.find(secret, BROWSER) is not None
