"""A portal with a site's own name and a year of use, without a cluster behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize
from werkzeug.serving import make_server

from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, World, make_world
from tests.unit.web.conftest import make_settings
from tests.unit.web.front import free_ports

LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40">
<rect width="120" height="40" rx="6" fill="{}"/>
<text x="60" y="27" font-size="20" fill="{}" text-anchor="middle">EXAMPLE</text>
</svg>"""
PEOPLE = (Person("alice", False, "a"), Person("bob", False, "b"), Person("admin", True, "c"))
ENVIRONMENTS = ("python", "r")
ACCOUNTS = ("physics", "chemistry")


@contextmanager
def running_site(folder: Path, **web: object) -> Iterator[tuple[str, World]]:
    """Its address, and what is behind it."""
    port = free_ports(1)
    address = f"http://localhost:{port}"
    world = make_world(make_settings(folder, public_url=address, **web))
    world.worker.read_partitions()
    world.worker.read_limits()
    server = make_server("127.0.0.1", port, create_app(world.services), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address, world
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def own_name(folder: Path) -> dict[str, object]:
    """Settings of a site with a name, logos, colours, links and a contact of its own."""
    for name, colours in (("light", ("#7a1f5c", "#fff")), ("dark", ("#e7a6d0", "#2a0a1e"))):
        (folder / f"{name}.svg").write_text(LOGO.format(*colours))
    return {
        "site_name": "Example HPC",
        "logo": str(folder / "light.svg"),
        "logo_dark": str(folder / "dark.svg"),
        "accent": "#7a1f5c",
        "accent_dark": "#e7a6d0",
        "contact": "hpc-support@example.org",
        "help_links": ({"title": "Cluster manual", "url": "https://docs.example.org/"},),
    }


def use(world: World) -> None:
    """Sessions of some months: those of one person are twice those of the next."""
    request = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})
    now = world.clock.now
    for number in range(28):
        who = PEOPLE[0] if number % 7 < 4 else PEOPLE[1] if number % 7 < 6 else PEOPLE[2]
        session = world.launch(who, request)
        started = now - timedelta(days=9 * number, hours=5)
        world.force(
            session.id,
            started=started,
            ended=None if number == 0 else started + timedelta(hours=3 + number % 5),
            state="RUNNING" if number == 0 else "FINISHED",
            cpus=(2, 4, 8)[number % 3],
            environment=ENVIRONMENTS[number % 2],
            account=ACCOUNTS[number % 2],
            last_used=now - timedelta(minutes=9) if number == 0 else None,
        )
        world.services.administration.record(
            who.name,
            "app.open",
            session.id,
            f"{('JupyterLab', 'Terminal')[number % 2]} of {session.name}",
        )


def enter(
    browser: Browser, address: str, user: str, viewport: ViewportSize
) -> tuple[BrowserContext, Page]:
    """A browser of a user's own, logged in, at the Sessions page."""
    context = browser.new_context(viewport=viewport)
    page = context.new_page()
    page.goto(f"{address}/login")
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password").fill(PASSWORDS[user])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/sessions")
    return context, page
