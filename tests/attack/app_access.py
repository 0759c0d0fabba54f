"""Helpers for attacks on tickets, grants and ports: open, move, redeem, check access."""

from __future__ import annotations

import time
from typing import Any

import requests

from portal.core.apps.origins import BAD_PORTS
from tests.support.client import TIMEOUT, Api, Json, Visitor
from tests.support.cluster import wait_for

PAUSE = 4
"""Minimum seconds between two moves of an app to another port."""
PUBLIC_APP = (
    "mkdir -p site; echo {word} > site/index.html; exec python3 -m http.server -d site $PORT"
)


def link(api: Api, session: str, app: str, **options: Any) -> Json:
    """Open an app; the portal's response."""
    return api.ask("POST", f"/sessions/{session}/apps/{app}", json=options)


def port_of(answer: Json) -> int:
    """The port at which an app was opened."""
    return int(answer["port"])


def move(api: Api, session: str, app: str, port: int, **more: object) -> Json:
    """Move an app to a port, retrying while the portal asks to wait; the last response."""
    for _ in range(4):
        answer = link(api, session, app, preferred_port=port, **more)
        if port_of(answer) == port or "a moment ago" not in answer["notice"]:
            return answer
        time.sleep(PAUSE / 2)
    return answer


def redeem(url: str) -> tuple[int, Visitor]:
    """Redeem a ticket in a new browser: the response's status, and that browser."""
    visitor = Visitor(url)
    answer = visitor.http.get(url, timeout=TIMEOUT, allow_redirects=False)
    return answer.status_code, visitor


def has_access(visitor: Visitor) -> bool:
    """Whether this browser has a valid cookie at its origin."""
    answer = visitor.get("/.slipway/status")
    return answer.status_code == 200 and bool(answer.json()["session"])


def free_ports(api: Api, session: str, app: str) -> list[int]:
    """Free ports of the pool, as listed in the refusal of a port outside it."""
    answer = api("POST", f"/sessions/{session}/apps/{app}", json={"preferred_port": 1})
    assert answer.status_code == 422, answer.text
    words = answer.json()["errors"][0]["message"].split()
    return [port for port in range(int(words[-3]), int(words[-1]) + 1) if port not in BAD_PORTS]


def open_public_app(api: Api, session: str, word: str) -> Json:
    """Open a web app to everybody that open_public_app this word."""
    command = PUBLIC_APP.format(word=word)
    answer = link(api, session, "webapp", asked=command, public=True)
    address = str(answer["public_url"])
    wait_for(f"the public app at {address}", lambda: serves_word(address, word), 60)
    return answer


def serves_word(address: str, word: str) -> bool:
    """Whether the word is served to anybody at the address."""
    try:
        answer = Visitor(address).get("/", allow_redirects=False)
    except requests.ConnectionError:  # the connection was cut: the route has been revoked
        return False
    return answer.status_code == 200 and word in answer.text
