"""A hostile app in the site under test."""

from __future__ import annotations

from pathlib import Path

from tests.apps import Kernel
from tests.client import TIMEOUT, Api, Visitor
from tests.cluster import wait_for

EVIL = (Path(__file__).parent / "evil.py").read_text()


def hostile_app(api: Api, session: str, app: str = "terminal") -> tuple[Kernel, Visitor]:
    """Somebody's own program listens in place of an app; also their kernel, which goes on."""
    kernel = Kernel(api.open(session, "jupyterlab"))
    link = api.ask("POST", f"/sessions/{session}/apps/{app}")
    visitor = Visitor(link["url"])
    # Nothing may reach the real app before: connections to it would be kept and used again.
    visitor.http.get(visitor.link, timeout=TIMEOUT, allow_redirects=False)

    def ready() -> bool:
        return bool(visitor.get("/.slipway/status").json()["step"] == "ready")

    wait_for(f"the {app} that is to be replaced", ready, 60)
    assert not kernel.run(EVIL).error
    assert not kernel.run(f"take_over({app!r})").error
    assert "evil" in visitor.get("/").text
    return kernel, visitor
