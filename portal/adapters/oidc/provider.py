"""The authorization code flow with PKCE, userinfo and logout."""

from __future__ import annotations

import base64
import hashlib
import logging
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from requests.auth import AuthBase, HTTPBasicAuth

from portal.adapters.oidc.answers import (
    ErrorResponse,
    InvalidResponseError,
    TokenResponse,
    Userinfo,
    read,
)
from portal.adapters.oidc.client import BearerAuth
from portal.adapters.oidc.metadata import Metadata
from portal.adapters.oidc.tokens import TokenError, TokenVerifier
from portal.adapters.ssh.per_user import ThreadBudget
from portal.config import OidcSettings
from portal.core.auth.oidc import (
    AuthorizationResponse,
    LoginAttempt,
    LogoutNotice,
    ProviderAnswer,
    claim_of,
    error_text,
    read_accounts,
)
from portal.core.interfaces.auth import IdentityProvider
from portal.core.interfaces.systems import Clock
from portal.errors import Unauthorized, Unavailable, clip, visible

log = logging.getLogger(__name__)

EXPIRED = "This log-in took too long, or was used before. Please log in again."
CALLBACK, LOGGED_OUT = "/login/oidc/callback", "/login/oidc/logged-out"
"""The portal's paths that are registered at the provider."""


class OidcProvider(IdentityProvider):
    """An OpenID provider over https."""

    def __init__(
        self,
        settings: OidcSettings,
        portal: str,
        clock: Clock,
        budget: ThreadBudget | None = None,
    ) -> None:
        """`portal`: the portal's origin; `budget`: the process's threads."""
        self._settings = settings
        self._portal = portal
        self._metadata = Metadata(settings, budget)
        self._tokens = TokenVerifier(settings, self._metadata, clock)

    def authorization_url(self, attempt: LoginAttempt) -> str:
        settings = self._settings
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": self._portal + CALLBACK,
            "scope": " ".join(settings.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": _challenge(attempt.verifier),
            "code_challenge_method": "S256",
        }
        if settings.prompt:
            query["prompt"] = settings.prompt
        if settings.max_age:
            query["max_age"] = str(settings.max_age)
        return _with_query(self._metadata.endpoint("authorization_endpoint"), query)

    def redeem(self, answer: AuthorizationResponse, attempt: LoginAttempt) -> ProviderAnswer:
        return self._metadata.turns.run(partial(self._redeem, answer, attempt))

    def _redeem(self, answer: AuthorizationResponse, attempt: LoginAttempt) -> ProviderAnswer:
        self._check_issuer(answer.issuer)
        if answer.error or not answer.code:
            raise Unauthorized(error_text(answer.error, self._settings.title))
        tokens = self._exchange(answer.code, attempt.verifier)
        try:
            claims = dict(self._tokens.id_token(tokens.id_token, attempt, tokens.access_token))
        except TokenError as error:
            raise self._refused(error) from error
        needed = self._settings.rule.needed
        if any(claim_of(claims, name) is None for name in needed):
            claims = self._userinfo(tokens.access_token, claims["sub"]) | claims
        return ProviderAnswer(claims, tokens.id_token)

    def _check_issuer(self, issuer: str) -> None:
        required = self._metadata.get().authorization_response_iss_parameter_supported
        if (issuer or required) and issuer != self._settings.issuer:
            log.warning("OpenID Connect: an answer of the issuer %r", issuer[:200])
            raise Unauthorized("The answer came from another log-in service. Please log in again.")

    def logout_url(self, id_token: str) -> str:
        endpoint = self._metadata.optional_endpoint("end_session_endpoint")
        if not endpoint:
            return ""
        query = {
            "id_token_hint": id_token,
            "client_id": self._settings.client_id,
            "post_logout_redirect_uri": self._portal + LOGGED_OUT,
        }
        return _with_query(endpoint, query)

    def read_logout(self, token: str) -> LogoutNotice:
        try:
            return self._tokens.logout_token(token)
        except TokenError as error:
            raise self._refused(error) from error

    def _exchange(self, code: str, verifier: str) -> TokenResponse:
        endpoint, (auth, data) = self._metadata.endpoint("token_endpoint"), self._credentials()
        data |= {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self._portal + CALLBACK,
        }
        response = self._metadata.ask("POST", endpoint, auth=auth, data=data)
        try:
            if response.status == 200 and "error" not in response.content:
                return read(TokenResponse, response.content)
            refusal = read(ErrorResponse, response.content).error
        except InvalidResponseError as error:
            raise self._metadata.failure(
                f"{endpoint}: status {response.status}, {error}"
            ) from error
        if refusal == "invalid_grant":
            raise Unauthorized(EXPIRED)
        raise self._metadata.failure(f"it refuses a code: {clip(refusal, 100)}")

    def _userinfo(self, access_token: str, subject: str) -> dict[str, Any]:
        """The account's claims, which the ID token may lack; {} if the provider has none."""
        endpoint = self._metadata.optional_endpoint("userinfo_endpoint")
        if not endpoint:
            return {}
        content = self._metadata.get_object(endpoint, auth=BearerAuth(access_token))
        try:
            is_other_user = read(Userinfo, content).sub != subject
        except InvalidResponseError as error:
            raise self._refused(TokenError(f"userinfo: {error}")) from error
        if is_other_user:
            raise self._refused(TokenError("userinfo: it is another user's"))
        # No other claims: the rest, such as sid, was verified in the ID token only.
        names = {"email_verified"}.union(
            *((n, n.split(".")[0]) for n in self._settings.rule.needed)
        )
        return {name: value for name, value in content.items() if name in names}

    def _refused(self, error: TokenError) -> Unauthorized:
        text = clip(visible(str(error)), 500)
        log.warning("OpenID provider %s: %s", self._settings.issuer, text)
        title = self._settings.title
        return Unauthorized(f"The answer of {title} is not valid. Please log in again.")

    def _credentials(self) -> tuple[AuthBase | None, dict[str, str]]:
        """The portal's client credentials, for the header or the form (RFC 6749, 2.3.1)."""
        name, secret = self._settings.client_id, self._secret()
        if not secret:
            return None, {"client_id": name}
        if "client_secret_basic" in self._metadata.get().token_endpoint_auth_methods_supported:
            return HTTPBasicAuth(quote(name, safe=""), quote(secret, safe="")), {}
        return None, {"client_id": name, "client_secret": secret}

    def _secret(self) -> str:
        """The client secret, read at each log-in so that it can change while the portal runs."""
        if not self._settings.client_secret_file:
            return ""
        try:
            text = Path(self._settings.client_secret_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise self._metadata.failure(f"oidc.client_secret_file: {error}") from error
        if not text:
            raise self._metadata.failure("oidc.client_secret_file is empty")
        return text


def _with_query(url: str, query: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


def _challenge(verifier: str) -> str:
    """PKCE's code challenge by S256 (RFC 7636)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class LocalAccountsFile:
    """The file of accounts by claim, read at each log-in so that changes apply at once."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self) -> dict[str, str] | None:
        """The file's content; None if the site has no such file. Raises Unavailable."""
        if not self._path:
            return None
        try:
            return read_accounts(Path(self._path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            log.error("oidc.accounts_file %s: %s", self._path, error)
            raise Unavailable("The portal cannot read which account is yours.") from error
