"""Verifies the provider's signed tokens: ID tokens and logout tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwt import JWTClaimsRegistry, Token

from portal.adapters.oidc.metadata import Metadata
from portal.config import OidcSettings
from portal.core.auth.oidc import LoginAttempt, LogoutNotice
from portal.core.interfaces.systems import Clock

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with public keys only: never none, and no HMAC, whose key the client would share."""
MAX_TOKEN = 100_000
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_LIFE = 300
"""Seconds for which a logout token without an expiry is accepted."""


class TokenError(Exception):
    """A token is not valid; the text says why, for the log."""


@dataclass(frozen=True)
class TokenVerifier:
    """Verifies tokens that the provider signed for this client."""

    settings: OidcSettings
    metadata: Metadata
    clock: Clock

    def id_token(self, token: str, attempt: LoginAttempt, access_token: str) -> Mapping[str, Any]:
        """The claims of an ID token; raises TokenError, or Unavailable without the keys."""
        decoded = self._decode(token)
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options=self._options(),
            params={
                "client_id": self.settings.client_id,
                "nonce": attempt.nonce,
                "access_token": access_token,
                "max_age": self.settings.max_age,
            },
        )
        try:
            claims.validate(now=self._now(), leeway=self.settings.clock_skew)
        except (JoseError, TypeError, ValueError) as error:
            raise TokenError(f"ID token: {error}") from error
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and "azp" not in claims:
            raise TokenError("ID token: several audiences, and no authorized party")
        if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
            raise TokenError("ID token: no subject")
        self._check_age(claims)
        return dict(claims)

    def _check_age(self, claims: Mapping[str, Any]) -> None:
        most = self.settings.max_age
        if most and self._now() - claims["auth_time"] > most + self.settings.clock_skew:
            raise TokenError("ID token: the credentials were entered too long ago")

    def logout_token(self, token: str) -> LogoutNotice:
        """The content of a logout token; raises TokenError, or Unavailable without the keys."""
        decoded = self._decode(token)
        claims = decoded.claims
        if str(decoded.header.get("typ", "logout+jwt")).lower() not in ("logout+jwt", "jwt"):
            raise TokenError("logout token: another kind of token")
        registry = JWTClaimsRegistry(
            self._now(),
            self.settings.clock_skew,
            **self._options(),
            iat={"essential": True},
            jti={"essential": True},
        )
        try:
            registry.validate(claims)
        except (JoseError, TypeError, ValueError) as error:
            raise TokenError(f"logout token: {error}") from error
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
            raise TokenError("logout token: no event of a logout")
        if "nonce" in claims:
            raise TokenError("logout token: it has a nonce, as ID tokens do")
        if self._now() - claims["iat"] > LOGOUT_LIFE + self.settings.clock_skew:
            raise TokenError("logout token: it is old")
        subject, session = claims.get("sub", ""), claims.get("sid", "")
        if not all(isinstance(one, str) for one in (subject, session, claims["jti"])):
            raise TokenError("logout token: a claim is no text")
        if not (subject or session):
            raise TokenError("logout token: neither sub nor sid")
        return LogoutNotice(claims["jti"], subject, session)

    def _options(self) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "value": self.settings.issuer},
            "aud": {"essential": True, "value": self.settings.client_id},
        }

    def _now(self) -> int:
        return int(self.clock().timestamp())

    def _decode(self, token: str) -> Token:
        """Verify the signature; with keys fetched anew if it is of none that is known."""
        if len(token) > MAX_TOKEN:
            raise TokenError("a token is too long")
        for anew in (False, True):
            try:
                return jwt.decode(token, self.metadata.keys(anew=anew), algorithms=list(ALGORITHMS))
            except (JoseError, TypeError, ValueError, RecursionError) as error:
                failed: Exception = error
        raise TokenError(f"signature: {failed}") from failed
