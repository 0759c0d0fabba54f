"""What attacks on tickets, grants and ports share: links, moves, and who is inside."""

from __future__ import annotations

import time
from typing import Any

import requests

from portal.core.apps.origins import BAD_PORTS
from tests.client import TIMEOUT, Api, Json, Visitor
from tests.cluster import wait_for

PAUSE = 4
"""Seconds after which an app may move that was asked to go to a port."""
PUBLIC_APP = (
    "mkdir -p site; echo {word} > site/index.html; exec python3 -m http.server -d site $PORT"
)


def link(api: Api, session: str, app: str, **wish: Any) -> Json:
    """A click on an app, and what the portal answers."""
    return api.ask("POST", f"/sessions/{session}/apps/{app}", json=wish)


def port_of(answer: Json) -> int:
    """The port at which an app was opened."""
    return int(answer["port"])


def move(api: Api, session: str, app: str, port: int) -> Json:
    """Move an app to a port, as often as it takes; the last answer."""
    for _ in range(4):
        answer = link(api, session, app, preferred_port=port)
        if port_of(answer) == port or "a moment ago" not in answer["notice"]:
            return answer
        time.sleep(PAUSE / 2)
    return answer


def redeem(url: str) -> tuple[int, Visitor]:
    """Use a link in a new browser: the answer's status, and that browser."""
    visitor = Visitor(url)
    answer = visitor.http.get(url, timeout=TIMEOUT, allow_redirects=False)
    return answer.status_code, visitor


def is_in(visitor: Visitor) -> bool:
    """Whether this browser has a good cookie at its origin."""
    answer = visitor.get("/.slipway/status")
    return answer.status_code == 200 and bool(answer.json()["session"])


def free_ports(api: Api, session: str, app: str) -> list[int]:
    """Ports of the pool, as the refusal of one that is not in it names them."""
    answer = api("POST", f"/sessions/{session}/apps/{app}", json={"preferred_port": 1})
    assert answer.status_code == 422, answer.text
    words = answer.json()["errors"][0]["message"].split()
    return [port for port in range(int(words[-3]), int(words[-1]) + 1) if port not in BAD_PORTS]


def serves(api: Api, session: str, word: str) -> Json:
    """A web app of one's own that is open to everybody and says this word."""
    command = PUBLIC_APP.format(word=word)
    answer = link(api, session, "webapp", asked=command, public=True)
    address = str(answer["public_url"])
    wait_for(f"the public app at {address}", lambda: says(address, word), 60)
    return answer


def says(address: str, word: str) -> bool:
    """Whether anybody who asks at the address gets the word."""
    try:
        answer = Visitor(address).get("/", allow_redirects=False)
    except requests.ConnectionError:  # cut in the middle: that is how a way is shut
        return False
    return answer.status_code == 200 and word in answer.text
