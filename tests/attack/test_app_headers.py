"""An app's response headers act on its own origin and lifetime only (M6)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
import requests

from tests.support.client import Api, Json, Visitor
from tests.support.cluster import wait_for

SERVER = """import json,os
from http.server import *
class A(BaseHTTPRequestHandler):
 def do_GET(s):
  s.send_response(200)
  for n,v in json.loads(s.headers.get("X-Answer","[]")):s.send_header(n,v)
  s.end_headers();s.wfile.write(b"here")
ThreadingHTTPServer(("127.0.0.1",int(os.environ["PORT"])),A).serve_forever()"""
"""A hostile app that responds with the requested headers. Commands are limited in length."""
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
"""Headers that act on the whole host or domain, or on the port's next user."""

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
"""Cookies that other origins would receive."""


@pytest.fixture(scope="module", params=["private", "public"])
def ask(request: pytest.FixtureRequest, researcher: Api, session: Json) -> Ask:
    """Request headers from alice's hostile app, with her cookie or anonymously."""
    public = request.param == "public"
    options = {"asked": COMMAND, "public": public}
    link = researcher.ask("POST", f"/sessions/{session['id']}/apps/webapp", json=options)
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
def test_headers_that_act_beyond_the_origin_are_dropped(ask: Ask, name: str, value: str) -> None:
    """M6: also if repeated; other headers of the app remain."""
    answer = ask((name, value), ("X-Own", "stays"), (name, value))
    assert name not in answer.headers
    assert answer.headers["X-Own"] == "stays"


@pytest.mark.parametrize("cookie", COOKIES)
def test_cookies_stay_at_their_host(ask: Ask, cookie: str) -> None:
    """M6: no Domain attribute gets through, however often and in whatever form it is written."""
    answer = ask(("Set-Cookie", cookie), ("Set-Cookie", "own=1; Path=/; HttpOnly"))
    arrived = answer.raw.headers.getlist("Set-Cookie")
    assert "own=1; Path=/; HttpOnly" in arrived
    for one in arrived:
        attributes = [part.partition("=")[0].strip().lower() for part in one.split(";")[1:]]
        assert "domain" not in attributes, arrived


@pytest.mark.parametrize(
    "name", ["slipway", "slipway_app_10000", "__Host-slipway", "__Secure-slipway"]
)
def test_an_app_cannot_set_portal_cookies(ask: Ask, name: str) -> None:
    """M6: not even in combination with other faults."""
    cookies = (f"{name}=planted; Path=/", f" {name}=planted; Domain=localhost", f"={name}=planted")
    answer = ask(*[("Set-Cookie", cookie) for cookie in cookies])
    assert "planted" not in str(answer.raw.headers.getlist("Set-Cookie"))
