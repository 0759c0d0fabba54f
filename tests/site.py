"""The site under test with other settings, and a hostile app in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apps import Kernel
from tests.client import TIMEOUT, Api, Visitor
from tests.cluster import Cluster, healthy, wait_for

SETTINGS = "/etc/slipway/slipway.toml"
EVIL = (Path(__file__).parent / "evil.py").read_text()


@contextmanager
def origins(cluster: Cluster, mode: str) -> Iterator[None]:
    """Apps have their origins in this way meanwhile: "ports" or "subdomains"."""
    before = cluster.run("portal", "cat", SETTINGS)
    lines = [line for line in before.splitlines() if not line.startswith("apps =")]
    there = lines.index("[web]") + 1
    _configure(cluster, "\n".join([*lines[:there], f'apps = "{mode}"', *lines[there:], ""]))
    try:
        yield
    finally:
        _configure(cluster, before)


def _configure(cluster: Cluster, settings: str) -> None:
    cluster.ctl("put", "portal", SETTINGS, stdin=settings)
    render = "slipway render haproxy > /run/slipway/haproxy.cfg"
    cluster.run("portal", "runuser", "--user", "slipway", "--", "sh", "-c", render)
    for daemon in ("web", "worker", "haproxy"):
        cluster.daemon("restart", "portal", daemon)
    wait_for("the portal", lambda: healthy(cluster), 60)


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
