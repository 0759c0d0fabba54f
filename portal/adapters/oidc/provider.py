"""The authorization code flow with PKCE, userinfo and logout, over Authlib."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from portal.adapters.oidc.metadata import SECONDS, Metadata
from portal.adapters.oidc.tokens import MAX_TOKEN, TokenError, TokenVerifier
from portal.config import OidcSettings
from portal.core.auth.oidc import (
    LoginAttempt,
    LogoutNotice,
    ProviderAnswer,
    claim_of,
    read_accounts,
)
from portal.core.interfaces.auth import IdentityProvider
from portal.core.interfaces.systems import Clock
from portal.errors import Unauthorized, Unavailable

log = logging.getLogger(__name__)

EXPIRED = "This log-in took too long, or was used before. Please log in again."
CALLBACK, LOGGED_OUT = "/login/oidc/callback", "/login/oidc/logged-out"
"""The portal's paths that are registered at the provider."""


class OidcProvider(IdentityProvider):
    """An OpenID provider over https."""

    def __init__(self, settings: OidcSettings, portal: str, clock: Clock) -> None:
        """`portal`: the portal's origin."""
        self._settings = settings
        self._portal = portal
        self._metadata = Metadata(settings)
        self._tokens = TokenVerifier(settings, self._metadata, clock)

    def authorization_url(self, attempt: LoginAttempt) -> str:
        settings = self._settings
        more: dict[str, str] = {}
        if settings.prompt:
            more["prompt"] = settings.prompt
        if settings.max_age:
            more["max_age"] = str(settings.max_age)
        with self._client() as client:
            url, _state = client.create_authorization_url(
                self._metadata.endpoint("authorization_endpoint"),
                state=attempt.state,
                code_verifier=attempt.verifier,
                nonce=attempt.nonce,
                **more,
            )
        return str(url)

    def check_issuer(self, issuer: str) -> None:
        required = self._metadata.get().get("authorization_response_iss_parameter_supported")
        if (issuer or required is True) and issuer != self._settings.issuer:
            log.warning("OpenID Connect: an answer of the issuer %r", issuer[:200])
            raise Unauthorized("The answer came from another log-in service. Please log in again.")

    def redeem(self, code: str, attempt: LoginAttempt) -> ProviderAnswer:
        answer = self._exchange(code, attempt.verifier)
        token, access = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str) or not isinstance(access, str):
            raise self._metadata.failure("its answer to a code has no ID token")
        try:
            claims = dict(self._tokens.id_token(token, attempt, access))
        except TokenError as error:
            raise self._refused(error) from error
        needed = self._settings.rule.needed
        if any(claim_of(claims, name) is None for name in needed):
            claims = self._userinfo(access, claims["sub"]) | claims
        return ProviderAnswer(claims, token)

    def logout_url(self, id_token: str) -> str:
        endpoint = self._metadata.optional_endpoint("end_session_endpoint")
        if not endpoint:
            return ""
        query = {
            "id_token_hint": id_token,
            "client_id": self._settings.client_id,
            "post_logout_redirect_uri": self._portal + LOGGED_OUT,
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def read_logout(self, token: str) -> LogoutNotice:
        try:
            return self._tokens.logout_token(token)
        except TokenError as error:
            raise self._refused(error) from error

    def _exchange(self, code: str, verifier: str) -> dict[str, Any]:
        endpoint = self._metadata.endpoint("token_endpoint")
        with self._client(self._secret()) as client:
            try:
                found = client.fetch_token(
                    endpoint, code=code, code_verifier=verifier, timeout=SECONDS
                )
            except OAuthError as error:
                if error.error == "invalid_grant":
                    raise Unauthorized(EXPIRED) from error
                raise self._metadata.failure(f"it refuses a code: {error.error}") from error
            except (requests.RequestException, OSError, ValueError, RecursionError) as error:
                raise self._metadata.failure(f"{endpoint}: {error}") from error
        return dict(found)

    def _userinfo(self, access_token: str, subject: str) -> dict[str, Any]:
        """Claims that the ID token lacks; {} if the provider has none."""
        endpoint = self._metadata.optional_endpoint("userinfo_endpoint")
        if not endpoint or len(access_token) > MAX_TOKEN or not access_token.isprintable():
            return {}
        headers = {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
        found = self._metadata.ask("GET", endpoint, headers=headers)
        if found.get("sub") != subject:
            raise self._refused(TokenError("userinfo: it is another user's"))
        return found

    def _refused(self, error: TokenError) -> Unauthorized:
        log.warning("OpenID provider %s: %s", self._settings.issuer, error)
        title = self._settings.title
        return Unauthorized(f"The answer of {title} is not valid. Please log in again.")

    def _client(self, secret: str = "") -> OAuth2Session:
        method, name = self._auth_method(), self._settings.client_id
        if secret and method == "client_secret_basic":  # encoded twice, by RFC 6749
            name, secret = quote(name, safe=""), quote(secret, safe="")
        client = OAuth2Session(
            client_id=name,
            client_secret=secret or None,
            token_endpoint_auth_method=method,
            scope=" ".join(self._settings.scopes),
            redirect_uri=self._portal + CALLBACK,
            code_challenge_method="S256",
        )
        client.verify = self._settings.ca_file or True
        client.max_redirects = 0
        return client

    def _auth_method(self) -> str:
        if not self._settings.client_secret_file:
            return "none"
        supported = self._metadata.get().get("token_endpoint_auth_methods_supported")
        basic = not isinstance(supported, list) or "client_secret_basic" in supported
        return "client_secret_basic" if basic else "client_secret_post"

    def _secret(self) -> str:
        """Read at each log-in, so that it can be changed while the portal runs."""
        if not self._settings.client_secret_file:
            return ""
        try:
            text = Path(self._settings.client_secret_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise self._metadata.failure(f"oidc.client_secret_file: {error}") from error
        if not text:
            raise self._metadata.failure("oidc.client_secret_file is empty")
        return text


class LocalAccountsFile:
    """The file of accounts by claim; read at each log-in, so that its changes hold at once."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self) -> dict[str, str] | None:
        """Its content; None if the site has none. Raises Unavailable."""
        if not self._path:
            return None
        try:
            return read_accounts(Path(self._path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            log.error("oidc.accounts_file %s: %s", self._path, error)
            raise Unavailable("The portal cannot read which account is yours.") from error
