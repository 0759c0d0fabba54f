"""Strict models of the provider's responses: every field that is read has a type and bounds."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from portal.errors import clip, visible

MAX_TOKEN = 100_000
_LAST_SECOND = 253_402_300_799
"""Of the year 9999."""


class InvalidResponseError(ValueError):
    """An answer that does not fit its model; the text names the field, for the log."""


def _is_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that cannot be printed")
    return text


Text = Annotated[str, Field(max_length=2000), AfterValidator(_is_printable)]
Identifier = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_is_printable)]
Names = Annotated[list[Text], Field(max_length=200)]
Seconds = Annotated[float, Field(ge=0, le=_LAST_SECOND, allow_inf_nan=False)]
"""Since 1970 (RFC 7519's NumericDate)."""


class _Response(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, content: Any) -> Any:
        """Drop null values, which some providers send for missing fields."""
        if not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if value is not None}


class Discovery(_Response):
    """The metadata (OpenID Connect Discovery 1.0)."""

    issuer: Text
    authorization_endpoint: Text = ""
    token_endpoint: Text = ""
    jwks_uri: Text = ""
    userinfo_endpoint: Text = ""
    end_session_endpoint: Text = ""
    authorization_response_iss_parameter_supported: bool = False
    token_endpoint_auth_methods_supported: Names = ["client_secret_basic"]
    code_challenge_methods_supported: Names | None = None


class PublishedKeys(_Response):
    """A JWK Set (RFC 7517). Its keys are read one by one, since unknown types must be ignored."""

    keys: Annotated[list[Any], Field(max_length=100)]


class TokenResponse(_Response):
    """The access token response (RFC 6749, 5.1); `expires_in` is not used."""

    id_token: str
    access_token: Annotated[str, Field(max_length=MAX_TOKEN, pattern="^[ -~]+$")]


class ErrorResponse(_Response):
    """The error response of the token endpoint (RFC 6749, 5.2)."""

    error: Text


class TokenHeader(_Response):
    """The header of a signed token (RFC 7515), which chooses the key."""

    alg: Text
    kid: Text = ""
    typ: Text = ""


class IdClaims(_Response):
    """The ID token's claims that every log-in needs; claims of the account are read separately."""

    iss: Text
    aud: Text | Names
    sub: Identifier
    exp: Seconds
    iat: Seconds
    nbf: Seconds = 0
    auth_time: Seconds = 0
    nonce: Text
    azp: Text = ""
    at_hash: Text = ""
    sid: Identifier = ""


class LogoutClaims(_Response):
    """The claims of a logout token (OpenID Connect Back-Channel Logout 1.0)."""

    iss: Text
    aud: Text | Names
    iat: Seconds
    exp: Seconds = _LAST_SECOND
    nbf: Seconds = 0
    jti: Text
    events: dict[str, Any]
    sub: Identifier = ""
    sid: Identifier = ""


class Userinfo(_Response):
    """The userinfo response; claims of the account are read separately."""

    sub: Identifier


M = TypeVar("M", bound=_Response)


def read(model: type[M], content: object) -> M:
    """Validate the content against a model; raises InvalidResponseError."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        text = f"{clip(field, 80)}: {first['msg']}"
        raise InvalidResponseError(clip(visible(text.removeprefix(": ")), 300)) from None
