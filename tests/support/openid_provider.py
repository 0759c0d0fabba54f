"""An OpenID provider on 127.0.0.1 that does as a test says, also what no provider should do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "slipway", "s3cret/+:%é"
JSON = dict[str, Any]


@cache
def _first_key() -> RSAKey:
    """Made once: this takes longer than a test."""
    return RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _part(value: JSON) -> str:
    return _base64(json.dumps(value).encode())


def _half_hash(text: str) -> str:
    return _base64(hashlib.sha256(text.encode()).digest()[:16])


@dataclass
class Code:
    """An authorization code, and the request that it answers."""

    request: dict[str, str]
    claims: JSON
    used: bool = False


class OpenIdServer(ThreadingHTTPServer):
    """Publishes metadata and keys, and exchanges codes; `authorize` is the user's log-in there."""

    daemon_threads = True

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clock = clock
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = _first_key()
        self.algorithm = "RS256"
        self.published: list[Any] = [self.key]
        self.codes: dict[str, Code] = {}
        self.access_tokens: dict[str, JSON] = {}
        self.userinfo: JSON = {}
        self.metadata: JSON = {}
        """Changes of the metadata; None leaves one out."""
        self.change: Callable[[JSON], JSON] = lambda claims: claims
        """What happens to the claims of an ID token."""
        self.encode: Callable[[JSON], str] = self.sign
        self.down = False
        self.answers: dict[str, Answer] = {}
        """What sends the answer at a path, in the place of what a provider should say."""
        self.sent = 0
        """Bytes that were sent by those."""
        self.ended = threading.Event()
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_args: object) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    @property
    def now(self) -> int:
        """Seconds since 1970, by the test's clock."""
        return int(self.clock().timestamp())

    def rotate(self, *, keep_old: bool = False) -> None:
        """Sign with a new key."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})
        self.published = [*(self.published if keep_old else ()), self.key]

    def sign(self, claims: JSON) -> str:
        """Sign as a provider should."""
        header = {"alg": self.algorithm, "kid": self.key.kid}
        return jwt.encode(header, claims, self.key, algorithms=[self.algorithm])

    def sign_text(self, payload: str) -> str:
        """Sign any payload, also one that is no JSON."""
        header = {"alg": self.algorithm, "kid": self.key.kid}
        return jws.serialize_compact(header, payload, self.key, algorithms=[self.algorithm])

    def sign_with_public_key(self, claims: JSON) -> str:
        """Sign with HMAC, with the public key as the secret."""
        return self._hmac(claims, self.key.as_pem(private=False))

    def sign_with_secret(self, claims: JSON) -> str:
        """Sign with HMAC, with the client's secret."""
        return self._hmac(claims, SECRET.encode())

    def _hmac(self, claims: JSON, secret: bytes) -> str:
        text = f"{_part({'alg': 'HS256', 'kid': self.key.kid})}.{_part(claims)}"
        return f"{text}.{_base64(hmac.digest(secret, text.encode(), 'sha256'))}"

    def not_sign(self, claims: JSON) -> str:
        """An unsigned token, with the algorithm "none"."""
        return f"{_part({'alg': 'none', 'kid': self.key.kid})}.{_part(claims)}."

    def authorize(self, url: str, subject: str = "u1", **claims: Any) -> str:
        """Somebody logs in at the address that the portal sent them to; the way back."""
        request = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(self.issuer + "/authorize?"), url
        assert (request["client_id"], request["response_type"]) == (CLIENT, "code")
        assert request["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = Code(request, {"sub": subject, "sid": f"s-{subject}"} | claims)
        answer = {"code": code, "state": request["state"], "iss": self.issuer}
        return f"{request['redirect_uri']}?{urlencode(answer)}"

    def describe(self) -> JSON:
        """The metadata."""
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/logout",
            "authorization_response_iss_parameter_supported": True,
        } | self.metadata
        return {name: value for name, value in found.items() if value is not None}

    def exchange(self, form: dict[str, str], credentials: str) -> tuple[int, JSON]:
        """The token endpoint."""
        name, _, secret = base64.b64decode(credentials).decode().partition(":")
        if (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        code = self.codes.get(form.get("code", ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = _base64(digest)
        if code is None or code.used or challenge != code.request["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        code.used = True
        access = secrets.token_urlsafe(16)
        self.access_tokens[access] = {"sub": code.claims["sub"]} | self.userinfo
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "exp": self.now + 300,
            "iat": self.now,
            "nonce": code.request["nonce"],
            "at_hash": _half_hash(access),
        } | code.claims
        token = self.encode(self.change(claims))
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": token}

    def logout_token(self, **changes: Any) -> str:
        """A token of back-channel logout."""
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": self.now,
            "exp": self.now + 120,
            "jti": secrets.token_hex(8),
            "sub": "u1",
            "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
        } | changes
        return self.encode({name: value for name, value in claims.items() if value is not None})


Answer = Callable[[OpenIdServer, Callable[[bytes], object]], None]
"""Writes all of an answer, from the status line on."""
OK = b"HTTP/1.0 200 OK\r\n\r\n"
LONGEST = 30.0
"""Seconds of an answer in pieces: more than anybody should wait, and an end for those who do."""


def raw(answer: bytes) -> Answer:
    """All at once."""
    return slowly(answer, b"", 0)


def slowly(start: bytes, piece: bytes, pause: float) -> Answer:
    """The start at once, then a piece after each pause, without end; b"": nothing ever."""

    def answer(server: OpenIdServer, write: Callable[[bytes], object]) -> None:
        end = time.monotonic() + LONGEST
        write(start)
        while (pause or piece) and time.monotonic() < end and not server.ended.wait(pause):
            write(piece)
            server.sent += len(piece)

    return answer


@dataclass
class _Reply:
    status: int
    body: JSON = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    """Answers for the server."""

    server: OpenIdServer

    def do_GET(self) -> None:
        """Metadata, keys and userinfo."""
        if not self._answers_oddly():
            self._send(self._get(urlsplit(self.path).path))

    def _get(self, path: str) -> _Reply:
        server = self.server
        if server.down:
            return _Reply(503)
        if path == "/.well-known/openid-configuration":
            return _Reply(200, server.describe())
        if path == "/jwks":
            return _Reply(200, dict(KeySet(server.published).as_dict(private=False)))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        found = server.access_tokens.get(token)
        return _Reply(401) if found is None else _Reply(200, found)

    def do_POST(self) -> None:
        """The token endpoint."""
        size = int(self.headers.get("Content-Length", 0))
        sent = parse_qs(self.rfile.read(size).decode())
        form = {name: values[0] for name, values in sent.items()}
        if self._answers_oddly():
            return
        credentials = self.headers.get("Authorization", "").removeprefix("Basic ")
        down = self.server.down
        self._send(_Reply(503) if down else _Reply(*self.server.exchange(form, credentials)))

    def _answers_oddly(self) -> bool:
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        answer = self.server.answers.get(path)
        if answer is None:
            return False
        with suppress(OSError):
            answer(self.server, self.wfile.write)
        self.close_connection = True
        return True

    def _send(self, reply: _Reply) -> None:
        content = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args: Any) -> None:
        """Log nothing."""


def elliptic_key() -> ECKey:
    """A key for ES256."""
    return ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
