"""What an app answers holds for its own origin and its own time, not for others (M6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
import requests

from tests.client import Api, Json, Visitor
from tests.cluster import wait_for

SERVER = """import json,os
from http.server import *
class A(BaseHTTPRequestHandler):
 def do_GET(s):
  s.send_response(200)
  for n,v in json.loads(s.headers.get("X-Answer","[]")):s.send_header(n,v)
  s.end_headers();s.wfile.write(b"here")
ThreadingHTTPServer(("127.0.0.1",int(os.environ["PORT"])),A).serve_forever()"""
"""A hostile app: it answers with the headers that it is asked for. Commands are short."""
COMMAND = f"echo {base64.b64encode(SERVER.encode()).decode()} | base64 -d | exec python3 -"
Ask = Callable[..., requests.Response]

FAR = [
    ("Clear-Site-Data", '"cookies"'),
    ("clear-site-data", '"cache", "cookies", "storage", "executionContexts"'),
    ("CLEAR-SITE-DATA", '"*"'),
    ("NEL", '{"report_to": "x", "max_age": 31536000, "include_subdomains": true}'),
    ("Report-To", '{"group": "x", "max_age": 31536000, "endpoints": [{"url": "https://x.org"}]}'),
    ("Alt-Svc", 'h2="evil.example.org:443"; ma=31536000; persist=1'),
    ("Strict-Transport-Security", "max-age=31536000; includeSubDomains; preload"),
]
"""Headers that act on the whole host or domain, or on whoever has the port next."""

COOKIES = [
    "dd=1; Path=/; Domain=127.0.0.1; Domain=x",
    "dd=1; Domain=a; Domain=b; Domain=c; Path=/",
    "dd=1; Domain=a; Domain=b; Domain=c; Domain=d; Domain=127.0.0.1",
    "dd=1;domain=localhost",
    "dd=1; DOMAIN = localhost ; Secure",
    "dd=1;\tdOmAiN\t=\tlocalhost;Path=/",
    "dd=1; Path=/; Domain",
    "dd=1; Path=/; Domain=",
    "dd=1; Domain=.localhost",
    'dd="a;Domain=localhost"; Domain=localhost',
]
"""Cookies that other origins would get."""


@pytest.fixture(scope="module", params=["private", "public"])
def ask(request: pytest.FixtureRequest, researcher: Api, session: Json) -> Ask:
    """Ask alice's hostile app for headers, with her key or as anybody."""
    public = request.param == "public"
    wish = {"asked": COMMAND, "public": public}
    link = researcher.ask("POST", f"/sessions/{session['id']}/apps/webapp", json=wish)
    visitor = Visitor(link["public_url"] if public else link["url"])
    if public:
        wait_for("the app", lambda: visitor.get("/").text == "here", 60)
    else:
        visitor.enter()

    def answer(*headers: tuple[str, str]) -> requests.Response:
        found = visitor.get("/", headers={"X-Answer": json.dumps(headers)})
        assert found.text == "here", found.text
        return found

    return answer


@pytest.mark.parametrize(("name", "value"), FAR, ids=[f"{name} {value[:9]}" for name, value in FAR])
def test_what_acts_beyond_the_origin_is_dropped(ask: Ask, name: str, value: str) -> None:
    """M6: also where it comes twice, and what is the app's own business stays."""
    answer = ask((name, value), ("X-Own", "stays"), (name, value))
    assert name not in answer.headers
    assert answer.headers["X-Own"] == "stays"


@pytest.mark.parametrize("cookie", COOKIES)
def test_cookies_stay_at_their_host(ask: Ask, cookie: str) -> None:
    """M6: no Domain attribute arrives, however often and in whatever way it is written."""
    answer = ask(("Set-Cookie", cookie), ("Set-Cookie", "own=1; Path=/; HttpOnly"))
    arrived = answer.raw.headers.getlist("Set-Cookie")
    assert "own=1; Path=/; HttpOnly" in arrived
    for one in arrived:
        attributes = [part.partition("=")[0].strip().lower() for part in one.split(";")[1:]]
        assert "domain" not in attributes, arrived


@pytest.mark.parametrize(
    "name", ["slipway", "slipway_app_10000", "__Host-slipway", "__Secure-slipway"]
)
def test_our_cookies_are_not_an_apps_to_set(ask: Ask, name: str) -> None:
    """M6: nor with what else is wrong with it."""
    cookies = (f"{name}=planted; Path=/", f" {name}=planted; Domain=localhost", f"={name}=planted")
    answer = ask(*[("Set-Cookie", cookie) for cookie in cookies])
    assert "planted" not in str(answer.raw.headers.getlist("Set-Cookie"))
