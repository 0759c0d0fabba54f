"""Odd answers of the provider: each visitor gets a page with words, and none of them comes in."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support.openid_provider import OK, OpenIdServer, raw, slowly
from tests.unit.web.auth.conftest import Site, Sites
from tests.unit.web.conftest import PORTAL

WORDS = "University login does not answer as it should"
INVALID = "The answer of University login is not valid"
DISCOVERY, KEYS, TOKEN = "/.well-known/openid-configuration", "/jwks", "/token"
NESTED = b"[" * 100_000 + b"]" * 100_000
LONG = float(10**12)

BODIES = {
    "nothing": b"",
    "no object": b"[]",
    "null": b"null",
    "nested": NESTED,
    "nested object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "nested within": b'{"keys":' + NESTED + b"}",
    "infinity": b'{"expires_in": Infinity}',
    "surrogate": b'{"id_token": "\\ud800", "access_token": "x"}',
    "no text": b'{"id_token": "\xff"}',
    "other types": b'{"id_token": 7, "access_token": [], "issuer": {}, "keys": {}}',
    "an error": b'{"error": {"a": 1}}',
}
ODD = {name: raw(OK + body) for name, body in BODIES.items()} | {
    "cut off": raw(b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n{}"),
    "no HTTP": raw(b"\0" * 100),
    "closed": raw(b""),
    "compressed": raw(
        b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b" " * (1 << 26))
    ),
    "redirect": raw(b"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n{}"),
    "chunks": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
}


@pytest.mark.parametrize("path", [DISCOVERY, KEYS, TOKEN])
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_odd_document(site: Site, path: str, answer: Any) -> None:
    site.provider.answers[path] = answer
    browser = site.browser()
    page = browser.get("/login/oidc") if path == DISCOVERY else site.log_in(browser)
    assert (page.status_code, WORDS in page.text) == (503, True)


def test_an_answer_that_does_not_end_is_not_read_to_its_end(site: Site) -> None:
    """400 MiB and more were in memory before."""
    site.provider.answers[TOKEN] = slowly(OK, b" " * (1 << 20), 0)
    assert WORDS in site.log_in().text
    assert site.provider.sent < 64 << 20


@pytest.mark.parametrize("odd", ["[3600]", "{}", "1e999", '"soon"', "null", "-1"])
def test_how_long_an_access_token_is_valid_does_not_matter(
    site: Site, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    exchange = site.provider.exchange

    def answer(form: dict[str, str], credentials: str) -> tuple[int, dict[str, Any]]:
        status, content = exchange(form, credentials)
        return status, content | {"expires_in": json.loads(odd)}

    monkeypatch.setattr(site.provider, "exchange", answer)
    # json.dumps writes 1e999 as Infinity, which is no JSON.
    assert site.log_in().status_code == (503 if odd == "1e999" else 303)


@pytest.mark.parametrize(
    "metadata",
    [
        {"authorization_endpoint": "https://[x/"},
        {"authorization_endpoint": ["https://x.example.org/"]},
        {"authorization_endpoint": "https://x.example.org/" + "a" * 3000},
        {"authorization_endpoint": "https://x.example.org/\r\nSet-Cookie: a=b"},
        {"authorization_endpoint": "https://é.example.org/"},
        {"token_endpoint_auth_methods_supported": {"client_secret_basic": 1}},
        {"authorization_response_iss_parameter_supported": "yes"},
        {"issuer": None},
    ],
    ids=lambda metadata: ascii(metadata)[:70],
)
def test_odd_metadata(site: Site, metadata: dict[str, Any]) -> None:
    site.provider.metadata = metadata
    page = site.browser().get("/login/oidc")
    assert (page.status_code, WORDS in page.text) == (503, True)


def test_null_is_nothing(site: Site) -> None:
    described = site.provider.describe() | {"userinfo_endpoint": None, "ui_locales": None}
    site.provider.answers[DISCOVERY] = raw(OK + json.dumps(described).encode())
    assert site.log_in().status_code == 303


CLAIMS: list[dict[str, Any]] = [
    {"sub": "u\0"},
    {"sub": "u\nroot"},
    {"sub": "\ud800"},
    {"sub": "u\u202e"},
    {"sid": "s\0"},
    {"sid": "\udfff"},
    {"sid": "s" * 256},
    {"sid": 7},
    {"iat": -1},
    {"iat": True},
    {"iat": float("nan")},
    {"exp": float("inf")},
    {"exp": "1e999"},
    {"nbf": float("nan")},
    {"nbf": [1]},
    {"auth_time": LONG},
    {"auth_time": float("nan")},
    {"auth_time": -1},
    {"auth_time": {}},
    {"nonce": ["n"]},
    {"aud": {"slipway": 1}},
    {"aud": ["slipway", 7]},
    {"azp": ["slipway"]},
    {"at_hash": 7},
]


@pytest.mark.parametrize("max_age", [0, 3600])
@pytest.mark.parametrize("claims", CLAIMS, ids=ascii)
def test_odd_claims(site_of: Sites, claims: dict[str, Any], max_age: int) -> None:
    site = site_of(max_age=max_age)
    now = {"auth_time": site.provider.now}
    site.provider.encode = lambda good: site.provider.sign_text(json.dumps(good | now | claims))
    page = site.log_in()
    assert (page.status_code, INVALID in page.text) == (401, True)
    site.provider.encode = lambda good: site.provider.sign_text(json.dumps(good | now))
    assert site.log_in().status_code == 303


@pytest.mark.parametrize("name", ["iat", "nbf", "auth_time"])
@pytest.mark.parametrize(("seconds", "status"), [(120, 401), (50, 303)])
def test_times_are_not_later_than_clocks_may_differ(
    site: Site, name: str, seconds: int, status: int
) -> None:
    site.provider.change = lambda claims: claims | {name: site.provider.now + seconds}
    assert site.log_in().status_code == status


@pytest.mark.parametrize("name", ["sub", "picture"])
def test_nested_claims(site: Site, name: str) -> None:
    nested = "[" * 30_000 + "]" * 30_000

    def encode(claims: dict[str, Any]) -> str:
        return site.provider.sign_text(json.dumps(claims)[:-1] + f', "{name}": {nested}}}')

    site.provider.encode = encode
    page = site.log_in()
    assert (page.status_code, INVALID in page.text) == (401, True)


@pytest.mark.parametrize(
    "header",
    ["{", "[]", "[" * 30_000, '{"alg": NaN}', '{"alg": ["RS256"]}', '{"alg": "RS256", "kid": 7}'],
    ids=lambda text: text[:30],
)
def test_odd_headers_of_tokens(site: Site, header: str) -> None:
    part = base64.urlsafe_b64encode(header.encode()).rstrip(b"=").decode()
    site.provider.encode = lambda claims: ".".join([part, *_rest(site.provider, claims)])
    page = site.log_in()
    assert (page.status_code, INVALID in page.text) == (401, True)


def _rest(provider: OpenIdServer, claims: dict[str, Any]) -> list[str]:
    return provider.sign(claims).split(".")[1:]


@pytest.mark.parametrize("sub", [7, None, "u1\0", "\ud800", ["u1"]])
def test_odd_userinfo(site_of: Sites, sub: Any) -> None:
    site = site_of(claim="uid")
    site.provider.userinfo = {"uid": "alice", "sub": sub}
    page = site.log_in()
    assert page.status_code == (503 if sub == "\ud800" else 401)


@pytest.mark.parametrize("token", ["x\ny", "é", "", 7, "x" * 100_001])
def test_odd_access_tokens(site: Site, monkeypatch: pytest.MonkeyPatch, token: Any) -> None:
    exchange = site.provider.exchange

    def answer(form: dict[str, str], credentials: str) -> tuple[int, dict[str, Any]]:
        status, content = exchange(form, credentials)
        return status, content | {"access_token": token}

    monkeypatch.setattr(site.provider, "exchange", answer)
    assert WORDS in site.log_in().text


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": float("nan")},
        {"iat": -1},
        {"iat": LONG},
        {"exp": float("nan")},
        {"nbf": float("nan")},
        {"sub": "u1\0"},
        {"sub": "\ud800"},
        {"sid": "s\n"},
        {"sid": ["s"]},
        {"jti": {"a": 1}},
        {"jti": "\ud800"},
        {"events": [1]},
        {"events": {"http://schemas.openid.net/event/backchannel-logout": 1}},
    ],
    ids=ascii,
)
def test_odd_logout_tokens(site: Site, claims: dict[str, Any]) -> None:
    site.log_in()
    site.provider.encode = lambda good: site.provider.sign_text(json.dumps(good | claims))
    assert _end(site, site.provider.logout_token()).status_code == 400
    assert site.world.services.logins.logins_of("alice")


def test_a_nested_logout_token(site: Site) -> None:
    site.log_in()
    assert _end(site, site.provider.sign_text('{"a":' * 9000 + "1" + "}" * 9000)).status_code == 400


def _end(site: Site, token: str) -> TestResponse:
    data = {"logout_token": token}
    return site.app.test_client().post("/login/oidc/back-channel", data=data, base_url=PORTAL)
