"""Installs a hostile app in a session of the cluster under test."""

from __future__ import annotations

from pathlib import Path

from tests.support.apps import Kernel
from tests.support.client import TIMEOUT, Api, Visitor
from tests.support.cluster import wait_for

PROGRAM = Path(__file__).with_name("hostile_app_program.py").read_text()


def hostile_app(api: Api, session: str, app: str = "terminal") -> tuple[Kernel, Visitor]:
    """Replace an app by the user's own program; returns the kernel that runs it, and a visitor."""
    kernel = Kernel(api.open(session, "jupyterlab"))
    link = api.ask("POST", f"/sessions/{session}/apps/{app}")
    visitor = Visitor(link["url"])
    # No request may reach the real app before: HAProxy would keep and reuse the connection.
    visitor.http.get(visitor.link, timeout=TIMEOUT, allow_redirects=False)

    def ready() -> bool:
        return bool(visitor.get("/.slipway/status").json()["step"] == "ready")

    wait_for(f"the {app} that is to be replaced", ready, 60)
    assert not kernel.run(PROGRAM).error
    assert not kernel.run(f"take_over({app!r})").error
    assert "evil" in visitor.get("/").text
    return kernel, visitor
