"""Verifies the provider's signed tokens: ID tokens and logout tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwt import JWTClaimsRegistry

from portal.adapters.oidc.answers import (
    MAX_TOKEN,
    IdClaims,
    LogoutClaims,
    TokenHeader,
    read,
)
from portal.adapters.oidc.metadata import Metadata
from portal.config import OidcSettings
from portal.core.auth.oidc import LoginAttempt, LogoutNotice
from portal.core.interfaces.systems import Clock
from portal.node.common.json_text import decode_object

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Public-key signatures only: neither "none" nor HMAC, whose key the client would share."""
_COMPACT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}")
"""A signed token (JWS Compact Serialization)."""
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
        header, content = self._decode(token)
        try:
            claims = read(IdClaims, content)
            CodeIDToken(
                content,
                header,
                options=self._options(),
                params={
                    "client_id": self.settings.client_id,
                    "nonce": attempt.nonce,
                    "access_token": access_token,
                    "max_age": self.settings.max_age,
                },
            ).validate(now=self._now(), leeway=self.settings.clock_skew)
        except (JoseError, TypeError, ValueError) as error:
            raise TokenError(f"ID token: {error}") from error
        if isinstance(claims.aud, list) and len(claims.aud) > 1 and not claims.azp:
            raise TokenError("ID token: several audiences, and no authorized party")
        self._check_age(claims)
        return content

    def _check_age(self, claims: IdClaims) -> None:
        age = self._now() - claims.auth_time
        most, skew = self.settings.max_age, self.settings.clock_skew
        if age < -skew:
            raise TokenError("ID token: the credentials were entered in the future")
        if most and age > most + skew:
            raise TokenError("ID token: the credentials were entered too long ago")

    def logout_token(self, token: str) -> LogoutNotice:
        """The content of a logout token; raises TokenError, or Unavailable without the keys."""
        header, content = self._decode(token)
        if str(header.get("typ", "logout+jwt")).lower() not in ("logout+jwt", "jwt"):
            raise TokenError("logout token: another kind of token")
        registry = JWTClaimsRegistry(self._now(), self.settings.clock_skew, **self._options())
        try:
            claims = read(LogoutClaims, content)
            registry.validate(content)
        except (JoseError, TypeError, ValueError) as error:
            raise TokenError(f"logout token: {error}") from error
        if not isinstance(claims.events.get(LOGOUT_EVENT), dict):
            raise TokenError("logout token: no event of a logout")
        if "nonce" in content:
            raise TokenError("logout token: it has a nonce, as ID tokens do")
        if self._now() - claims.iat > LOGOUT_LIFE + self.settings.clock_skew:
            raise TokenError("logout token: it is old")
        if not (claims.sub or claims.sid):
            raise TokenError("logout token: neither sub nor sid")
        return LogoutNotice(claims.jti, claims.sub, claims.sid)

    def _options(self) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "value": self.settings.issuer},
            "aud": {"essential": True, "value": self.settings.client_id},
        }

    def _now(self) -> int:
        return int(self.clock().timestamp())

    def _decode(self, token: str) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """The verified header and claims; the keys are fetched again if the token's key is unknown.

        The header is validated before a library reads it, since it is not authenticated yet.
        """
        if len(token) > MAX_TOKEN or not _COMPACT.fullmatch(token):
            raise TokenError("it is not a signed token, or too long")
        try:
            read(TokenHeader, decode_object(_decoded(token.partition(".")[0])))
        except ValueError as error:
            raise TokenError(f"header of a token: {error}") from error
        signed = self._verify(token)
        try:
            return signed.headers(), decode_object(signed.payload or b"")
        except ValueError as error:
            raise TokenError(f"claims of a token: {error}") from error

    def _verify(self, token: str) -> jws.CompactSignature:
        for refresh in (False, True):
            keys = self.metadata.keys(refresh=refresh)
            try:
                return jws.deserialize_compact(token, keys, algorithms=list(ALGORITHMS))
            except (JoseError, TypeError, ValueError, RecursionError) as error:
                failed: Exception = error
        raise TokenError(f"signature: {failed}") from failed


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
