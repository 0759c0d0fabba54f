"""Browsers at the origins of apps."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import Flask

from tests.unit.web.conftest import Browser, Runner

ADDRESS = "/.slipway/session"
HTML = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}


def opened(app: Flask, alice: Browser, runner: Runner, public: bool = False) -> Browser:
    """Alice's browser at the origin of an app of hers."""
    fields = {"public": "yes"} if public else {}
    answer = alice.post(f"/sessions/{runner.session.id}/apps/board/open", fields)
    link = urlsplit(answer.headers["Location"])
    inside = Browser(app, f"{link.scheme}://{link.netloc}")
    assert inside.get(f"{link.path}?{link.query}", headers=HTML).status_code == 303
    return inside
