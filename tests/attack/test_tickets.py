"""Attacks with tickets: a link works once, for one app, and for its owner only."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from tests.attack.app_access import free_ports, has_access, link, move, port_of, redeem
from tests.support.client import OVER, Api, Json, Visitor
from tests.support.cluster import tls

HTML = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}


def test_bobs_ticket_never_opens_alices_app(alice: Api, bob: Api) -> None:
    """C1: he has a ticket for a port, gives the port up, and she opens JupyterLab there."""
    his, hers = bob.running()["id"], alice.running()["id"]
    ports = free_ports(bob, his, "terminal")
    preferred = next(port for port in ports if port_of(move(bob, his, "terminal", port)) == port)
    kept = link(bob, his, "terminal")
    assert port_of(kept) == preferred
    other = next(
        port for port in ports if port_of(move(bob, his, "terminal", port)) not in (preferred,)
    )
    assert other != preferred
    opened = move(alice, hers, "jupyterlab", preferred)
    status, visitor = redeem(kept["url"])
    assert not has_access(visitor), f"bob is at {opened['url']}: {status}"
    assert not visitor.cookie
    Visitor(opened["url"]).enter()


def test_a_ticket_is_valid_for_its_own_app_only(researcher: Api, session: Json) -> None:
    """C1: another app of the same owner, at the port that the first one used before."""
    ports = free_ports(researcher, session["id"], "terminal")
    first = next(
        port for port in ports if port_of(move(researcher, session["id"], "terminal", port)) == port
    )
    old = link(researcher, session["id"], "terminal")
    inside = redeem(link(researcher, session["id"], "terminal")["url"])[1]
    assert has_access(inside)
    second = next(
        port
        for port in ports
        if port != first and port_of(move(researcher, session["id"], "terminal", port)) == port
    )
    assert second != first
    now = move(researcher, session["id"], "webapp", first, asked="sleep 100")
    assert port_of(now) == first
    status, visitor = redeem(old["url"])
    assert status == 401, "a ticket for the terminal opened another app"
    assert not has_access(visitor)
    assert not has_access(inside), "a cookie for the terminal opened another app"


def test_closing_revokes_the_tickets(researcher: Api, session: Json) -> None:
    """L10: a link that has not been used yet."""
    old = link(researcher, session["id"], "terminal")
    path = f"/sessions/{session['id']}/apps/terminal"
    assert researcher("DELETE", path).status_code == 204
    assert redeem(old["url"])[0] == 401
    assert redeem(link(researcher, session["id"], "terminal")["url"])[0] == 303


def test_making_private_revokes_the_tickets(researcher: Api, session: Json) -> None:
    """L10: a link to an app that was open to everybody."""
    old = link(researcher, session["id"], "webapp", public=True, asked="sleep 60")
    link(researcher, session["id"], "webapp", public=False)
    assert redeem(old["url"])[0] == 401


def test_tickets_and_cookies_of_the_previous_session_are_void_in_the_next(alice: Api) -> None:
    """C1: JupyterLab gets its origin again; visitors of the previous session have no access."""
    first = alice.running()["id"]
    lab = alice.open(first, "jupyterlab")
    old = link(alice, first, "jupyterlab")
    alice.stop(first)
    alice.wait_state(first, *OVER)
    again = link(alice, alice.running()["id"], "jupyterlab")
    assert again["url"].startswith(lab.origin + "/"), "another origin: the browser's cache is lost"
    assert redeem(old["url"])[0] == 401
    assert not has_access(lab)
    assert redeem(again["url"])[0] == 303


def test_tickets_and_browsers_are_limited(researcher: Api, session: Json) -> None:
    """L10: the newest ones are valid, the oldest are not."""
    links = [link(researcher, session["id"], "terminal")["url"] for _ in range(12)]
    assert [redeem(url)[0] for url in links] == [401] * 4 + [303] * 8
    inside = [redeem(link(researcher, session["id"], "terminal")["url"])[1] for _ in range(20)]
    good = [has_access(visitor) for visitor in inside]
    assert good == [False] * 4 + [True] * 16


def test_head_does_not_use_up_a_ticket_and_a_missing_one_is_reported(
    researcher: Api, session: Json
) -> None:
    """E36: HEAD, and a request without a ticket."""
    url = link(researcher, session["id"], "terminal")["url"]
    visitor = Visitor(url)
    looked = visitor.http.head(url, timeout=10, allow_redirects=False)
    assert looked.status_code == 405
    assert not visitor.cookie
    assert redeem(url)[0] == 303
    empty = Visitor(url).get("/.slipway/enter?ticket=", headers=HTML)
    assert empty.status_code == 401
    assert "The ticket is missing" in empty.text


def test_two_origins_are_refused(researcher: Api, session: Json) -> None:
    """E36: one of another site and one of its own, in both orders."""
    visitor = researcher.open(session["id"], "terminal")
    place = urlsplit(visitor.origin)
    for origins in (["http://evil.example.org", visitor.origin], [visitor.origin] * 2):
        answer = _raw(visitor, place.netloc, origins)
        assert answer in (400, 403), origins


def _raw(visitor: Visitor, host: str, origins: list[str]) -> int:
    place = urlsplit(visitor.origin)
    connection: http.client.HTTPConnection
    if place.scheme == "https":
        port, context = place.port or 443, tls()
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", place.port or 80, timeout=10)
    connection.putrequest("GET", "/ws", skip_host=True)
    lines = [("Host", host), ("Cookie", f"{visitor.cookie_name}={visitor.cookie}")]
    lines += [("Upgrade", "websocket"), ("Connection", "Upgrade")]
    lines += [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]
    for name, value in lines + [("Origin", origin) for origin in origins]:
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status
