"""The models of the provider's answers: what fits, and which field is named where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from portal.adapters.oidc.answers import (
    Discovery,
    IdClaims,
    InvalidResponseError,
    LogoutClaims,
    PublishedKeys,
    TokenResponse,
    read,
)

CLAIMS = {"iss": "i", "aud": "a", "sub": "u1", "exp": 2, "iat": 1.5, "nonce": "n"}
LOGOUT = {"iss": "i", "aud": ["a"], "iat": 1, "jti": "j", "events": {}, "sub": "u1"}


def test_what_fits() -> None:
    assert read(Discovery, {"issuer": "i", "jwks_uri": None, "more": [1]}).jwks_uri == ""
    assert read(TokenResponse, {"id_token": "t", "access_token": "a", "expires_in": [7]})
    claims = read(IdClaims, CLAIMS | {"sid": None, "groups": ["g"]})
    assert (claims.iat, claims.auth_time, claims.sid) == (1.5, 0, "")
    assert read(LogoutClaims, LOGOUT).sub == "u1"


@pytest.mark.parametrize(
    ("model", "content", "field"),
    [
        (Discovery, {}, "issuer"),
        (Discovery, {"issuer": "i", "token_endpoint": "x" * 2001}, "token_endpoint"),
        (Discovery, {"issuer": "i", "token_endpoint": b"x"}, "token_endpoint"),
        (
            Discovery,
            {"issuer": "i", "token_endpoint_auth_methods_supported": "x"},
            "token_endpoint_auth_methods_supported",
        ),
        (PublishedKeys, {"keys": [{}] * 101}, "keys"),
        (PublishedKeys, {"keys": {"kty": "RSA"}}, "keys"),
        (TokenResponse, {"id_token": "t"}, "access_token"),
        (TokenResponse, {"id_token": "t", "access_token": "a\r\nb"}, "access_token"),
        (IdClaims, CLAIMS | {"sub": None}, "sub"),
        (IdClaims, CLAIMS | {"sub": "a\x7f"}, "sub"),
        (IdClaims, CLAIMS | {"sub": "x" * 256}, "sub"),
        (IdClaims, CLAIMS | {"iat": True}, "iat"),
        (IdClaims, CLAIMS | {"iat": "1"}, "iat"),
        (IdClaims, CLAIMS | {"exp": float("nan")}, "exp"),
        (IdClaims, CLAIMS | {"auth_time": float("inf")}, "auth_time"),
        (IdClaims, CLAIMS | {"nbf": -0.5}, "nbf"),
        (IdClaims, CLAIMS | {"exp": 10**30}, "exp"),
        (LogoutClaims, LOGOUT | {"events": []}, "events"),
        (LogoutClaims, LOGOUT | {"jti": "a\0"}, "jti"),
    ],
)
def test_what_does_not_fit(model: Any, content: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidResponseError, match=rf"^{field}: "):
        read(model, content)


@pytest.mark.parametrize("content", [[], None, 7, "text"])
def test_what_is_no_object(content: object) -> None:
    with pytest.raises(InvalidResponseError, match="valid dictionary"):
        read(Discovery, content)
