"""Targets of `next`: this portal, or this app, and nothing else.

Row "Open redirects" of what was attacked and found solid.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.client import Api, Browser, Json, Visitor
from tests.support.cluster import Cluster

ELSEWHERE = (
    "https://evil.example.org/",
    "//evil.example.org/",
    "///evil.example.org/",
    "/\\evil.example.org/",
    "\\\\evil.example.org/",
    "/\t/evil.example.org/",
    "/%09/evil.example.org/",
    "\t//evil.example.org/",
    "/\r\nLocation: https://evil.example.org/",
    "/%0d%0aLocation:%20https://evil.example.org/",
    "javascript:alert(1)",
    "data:text/html,evil",
    "@evil.example.org/",
    "/..//evil.example.org/",
    "/.//evil.example.org/",
    "https:evil.example.org",
    "http:///evil.example.org",
    "/sessions/\\..//evil.example.org",
    "\u2215\u2215evil.example.org",
    " //evil.example.org",
)


def _is_same_origin(origin: str, location: str) -> bool:
    # As a browser parses it: tabs and line breaks are dropped, and a backslash is a slash.
    read = location.strip(" \0").translate({9: None, 10: None, 13: None}).replace("\\", "/")
    target = urlsplit(urljoin(f"{origin}/login", read))
    return f"{target.scheme}://{target.netloc}" == origin


@pytest.fixture(scope="module")
def her(logged_in: LoggedIn) -> Browser:
    """Alice's browser, logged in."""
    return logged_in("alice")


@pytest.mark.parametrize("target", ELSEWHERE)
def test_a_login_redirects_within_the_portal(cluster: Cluster, her: Browser, target: str) -> None:
    answer = her.get("/login", params={"next": target}, allow_redirects=False)
    assert answer.status_code == 303
    assert _is_same_origin(cluster.url, answer.headers["Location"]), answer.headers["Location"]


@pytest.fixture(scope="module")
def link(researcher: Api, session: Json) -> str:
    """The URL that opens alice's terminal, without its ticket."""
    Visitor(researcher.ask("POST", f"/sessions/{session['id']}/apps/terminal")["url"]).enter()
    return f"/sessions/{session['id']}/apps/terminal"


@pytest.mark.parametrize("target", ELSEWHERE)
def test_a_ticket_redirects_within_the_app(researcher: Api, link: str, target: str) -> None:
    visitor = Visitor(researcher.ask("POST", link)["url"])
    address = visitor.link.partition("&next=")[0]
    answer = visitor.http.get(address, params={"next": target}, timeout=10, allow_redirects=False)
    assert answer.status_code in (303, 400), answer.text
    if answer.status_code == 303:
        assert _is_same_origin(visitor.origin, answer.headers["Location"]), answer.headers[
            "Location"
        ]
