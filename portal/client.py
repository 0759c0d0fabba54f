"""A client of the portal's REST API, for the JupyterHub spawner.

Only idempotent requests are repeated: reads, and launches with an Idempotency-Key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from portal.client_offers import Offers, ResponsePart
from portal.errors import FieldError

Json = Mapping[str, Any]

CONNECT = 5.0
"""Timeout of a connection attempt in seconds."""
ANSWER = 30.0
"""Timeout of a response in seconds."""
TRIES = 3
PAUSE = 0.5
"""Seconds before the second attempt; doubled before each further one."""
PASSING = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
MOST_ACCOUNTS = 12
"""Maximum number of accounts whose QOS are requested besides the current account's."""
AGENT = "slipway-client"
SCOPES = ["read", "write"]


class ClientError(Exception):
    """A request failed; `text` may be shown to users."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class NoAnswer(ClientError):
    """The portal did not answer, so whether it acted is unknown."""


class Refused(ClientError):
    """The portal refused; `errors` names the wrong fields, if any."""

    def __init__(self, status: int, text: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.errors = errors

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in PASSING


class Reason(ResponsePart):
    """Why a session is not running yet."""

    code: str
    text: str
    advice: str
    ahead: int | None = None
    estimated_start: datetime | None = None


class End(ResponsePart):
    """How a session ended."""

    cause: str
    text: str
    exit_code: int | None = None
    log: str = ""


class App(ResponsePart):
    """An app of a session."""

    name: str
    state: str | None = None
    """None until it has been opened."""
    message: str = ""


class Session(ResponsePart):
    """A session, as the API describes it."""

    id: str
    name: str
    owner: str
    state: str
    reason: Reason | None = None
    end: End | None = None
    job_id: str | None = None
    node: str | None = None
    apps: tuple[App, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("FINISHED", "FAILED")

    def app(self, name: str) -> App | None:
        """The app of this name, if the session offers it."""
        return next((app for app in self.apps if app.name == name), None)


class _Sessions(ResponsePart):
    sessions: tuple[Session, ...]


class Client:
    """The REST API, with a user's token, or with a service's token that acts for `user`.

    Thread-safe as requests.Session is: one connection pool for all calls. Every method raises
    Refused, or NoAnswer.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        user: str | None = None,
        verify: bool | str = True,
        http: requests.Session | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._http = http or _pool(verify)
        self._headers = {"Accept": "application/json", "User-Agent": AGENT}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        if user is not None:
            self._headers["Slipway-User"] = user

    def acting_for(self, token: str, user: str | None = None) -> Client:
        """The same portal and connections, with another token or for another user."""
        return Client(self.url, token, user=user, http=self._http)

    # Sessions

    def launch(self, request: Json, key: str) -> tuple[Session, ...]:
        """Launch sessions; the same `key` never launches twice."""
        answer = self._send(
            "POST", "/sessions", tries=TRIES, json=request, headers={"Idempotency-Key": key}
        )
        return _Sessions.model_validate(answer).sessions

    def session(self, identifier: str) -> Session:
        """One session."""
        return Session.model_validate(self._send("GET", f"/sessions/{identifier}", tries=TRIES))

    def sessions(self, **query: str | int) -> tuple[Session, ...]:
        """The first page of the sessions that match, newest first."""
        answer = self._send("GET", "/sessions", tries=TRIES, params=query)
        return _Sessions.model_validate(answer).sessions

    def stop(self, identifier: str) -> Session:
        """End a session; no effect on one that is over."""
        answer = self._send("DELETE", f"/sessions/{identifier}", tries=TRIES)
        return Session.model_validate(answer)

    def offers(self, **chosen: str) -> Offers:
        """The current choices for the user's requests.

        `chosen`: Slurm's own options of an earlier request, on which the lists of other options
        depend. Options that cannot be chosen any more are ignored.
        """
        offers: dict[str, Any] = {"choice": self._with_every_qos(self._choice(chosen))}
        for path in ("environments", "resource-groups", "templates", "folders"):
            offers |= self._send("GET", f"/{path}", tries=TRIES)
        return Offers.model_validate(offers)

    def _choice(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        """The choices among Slurm's own options, with `chosen` if valid, else defaults."""
        try:
            choice = self._send("GET", "/launch-options", tries=TRIES, params=chosen)
        except Refused as error:
            if not chosen or error.is_passing:
                raise
            return self._choice({})
        return self._choice({}) if chosen and choice.get("problems") else choice

    def _with_every_qos(self, choice: Json) -> dict[str, Any]:
        """Add the QOS of the other accounts, which a form shows before an account is chosen."""
        accounts = [account["name"] for account in choice["accounts"]]
        current = choice["in_effect"]["account"]
        offered = {qos["name"]: qos for qos in choice["qos"]}
        for account in [name for name in accounts if name != current][:MOST_ACCOUNTS]:
            for qos in self._choice({"account": account})["qos"]:
                entry = {**qos, "note": f"with account {account}", "default": False}
                offered.setdefault(qos["name"], entry)
        return {**choice, "qos": list(offered.values())}

    # Tokens

    def make_token(
        self,
        username: str,
        password: str,
        headers: Mapping[str, str] | None = None,
        **fields: str | int,
    ) -> str:
        """Exchange a password for a token of its owner, without an administrator's rights.

        `headers` name the client of the login; `fields` are further fields of the request.
        """
        body = {"username": username, "password": password, "scopes": SCOPES} | fields
        answer = self._send("POST", "/tokens", json=body, headers=headers)
        return str(answer["token"])

    def revoke_own_token(self) -> None:
        """Revoke the token that this client sends."""
        for token in self._send("GET", "/tokens")["tokens"]:
            if token["current"]:
                self._send("DELETE", f"/tokens/{token['id']}")

    def account(self) -> str:
        """The name of the token's owner, in the cluster's spelling."""
        return str(self._send("GET", "/me")["name"])

    # Requests

    def _send(self, method: str, path: str, *, tries: int = 1, **options: Any) -> dict[str, Any]:
        """Send a request, up to `tries` times after temporary failures."""
        pause = PAUSE
        while True:
            tries -= 1
            try:
                return self._once(method, path, **options)
            except ClientError as error:
                passing = isinstance(error, NoAnswer) or (
                    isinstance(error, Refused) and error.is_passing
                )
                if not tries or not passing:
                    raise
            time.sleep(pause)
            pause *= 2

    def _once(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> dict[str, Any]:
        try:
            response = self._http.request(
                method,
                f"{self.url}/api/v1{path}",
                headers={**self._headers, **(headers or {})},
                timeout=(CONNECT, ANSWER),
                allow_redirects=False,
                **options,
            )
        except requests.RequestException as error:
            raise NoAnswer("The portal does not answer.") from error
        return _answer(response)


def _pool(verify: bool | str) -> requests.Session:
    session = requests.Session()
    session.verify = verify
    session.trust_env = False  # use neither the machine's proxy nor its .netrc
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # users share connections
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=64))
    return session


def _answer(response: requests.Response) -> dict[str, Any]:
    """The JSON object of a successful response; raises Refused."""
    body = _object(response)
    if response.ok and body is not None and not response.is_redirect:
        return body
    if response.status_code == 204:
        return {}
    body = body or {}
    text = body.get("detail") or f"The portal answered with status {response.status_code}."
    raise Refused(response.status_code, str(text), _fields(body.get("errors")))


def _object(response: requests.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except requests.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None


def _fields(errors: object) -> tuple[FieldError, ...]:
    if not isinstance(errors, list):
        return ()
    return tuple(
        FieldError(str(error.get("field", "")), str(error.get("message", "")))
        for error in errors
        if isinstance(error, dict)
    )
