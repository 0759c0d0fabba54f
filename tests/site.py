"""The site under test with other settings, and a hostile app in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apps import Kernel
from tests.client import TIMEOUT, Api, Visitor
from tests.cluster import Cluster, healthy, wait_for

DAEMONS = "/etc/supervisor/portal.conf"
EVIL = (Path(__file__).parent / "evil.py").read_text()


@contextmanager
def origins(cluster: Cluster, mode: str) -> Iterator[None]:
    """Apps have their origins in this way meanwhile: "ports" or "subdomains"."""
    usual = cluster.run("portal", "printenv", "SLIPWAY_APPS").strip()
    if mode == usual:
        yield
        return
    daemons = cluster.run("portal", "cat", DAEMONS)
    variable = f'user = slipway\nenvironment = SLIPWAY_APPS="{mode}"\n'
    _configure(cluster, mode, daemons.replace("user = slipway\n", variable))
    try:
        yield
    finally:
        _configure(cluster, usual, daemons)


def _configure(cluster: Cluster, mode: str, daemons: str) -> None:
    cluster.ctl("put", "portal", DAEMONS, stdin=daemons)
    render = f"SLIPWAY_APPS={mode} slipway render haproxy > /run/slipway/haproxy.cfg"
    cluster.run("portal", "runuser", "--user", "slipway", "--", "sh", "-c", render)
    cluster.run("portal", "supervisorctl", "update")
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
