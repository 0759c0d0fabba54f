"""The wizard's first page: it opens at its top, and environments are found among many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from werkzeug.serving import make_server

from portal.core.apps.catalog import Catalog, Image
from portal.web.app import create_app
from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.support.cluster import Cluster
from tests.support.fakes import APPS, PASSWORDS, make_world
from tests.unit.web.conftest import make_settings
from tests.unit.web.front import free_ports

WHO = "bob"
SMALL, LARGE = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


def tool(number: int) -> Image:
    """One of many environments, each with two versions."""
    environment, version = divmod(number, 2)
    title = f"Tool {environment}"
    return Image(
        environment=f"tool{environment:02}",
        version=f"{version + 1}.0",
        path=f"/images/{number}.sif",
        title=f"{title} {version + 1}.0",
        description=f"{title} with the libraries that its users asked for, and documentation.",
        default_app="terminal",
    )


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a portal with 40 environments, without a cluster behind it."""
    monkeypatch.setattr(
        "tests.support.fakes.CATALOG", Catalog(apps=APPS, images=tuple(tool(n) for n in range(80)))
    )
    port = free_ports(1)
    address = f"http://localhost:{port}"
    world = make_world(make_settings(tmp_path, public_url=address))
    server = make_server("127.0.0.1", port, create_app(world.services), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield address
    server.shutdown()


def opened(page: Page, cluster: Cluster, place: str = "") -> None:
    """Open the wizard, and wait for its script."""
    page.goto("about:blank")
    page.goto(f"{cluster.url}/sessions/new{place}", wait_until="networkidle")
    expect(page.get_by_role("button", name="Next")).to_be_visible()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["phone", "desk"])
def test_it_opens_at_its_top(log_in: LogIn, cluster: Cluster, size: dict[str, int]) -> None:
    page = log_in(WHO, viewport=size)
    for place in ("", "#resources", "#folders"):
        opened(page, cluster, place)
        assert page.evaluate("scrollY") == 0
        expect(page.get_by_role("heading", name="Start a session")).to_be_in_viewport()
    opened(page, cluster)
    for step in ("folders", "resources", "review"):
        page.evaluate("scrollTo(0, 9999)")
        page.get_by_role("button", name="Next").click()
        expect(page.locator(f"#title-{step}")).to_be_focused()
        expect(page.locator(f"#title-{step}")).to_be_in_viewport(ratio=1)
    page.reload(wait_until="networkidle")
    assert page.evaluate("scrollY") == 0


def test_environments_have_their_titles_and_versions_as_chips(
    log_in: LogIn, cluster: Cluster, picture: Picture
) -> None:
    page = log_in(WHO, viewport=LARGE)
    opened(page, cluster)
    names = page.locator(".env-title").all_inner_texts()
    assert {"Python", "Debian", "BusyBox"} <= set(names)
    expect(page.locator(".env-card").first.locator(":checked")).to_have_count(1)
    # Name and variables are seen without scrolling.
    expect(page.get_by_label("Session name")).to_be_in_viewport(ratio=1)
    expect(page.locator("#field-env")).to_be_in_viewport(ratio=1)
    picture(page, "wizard-start-1440")
    page.locator(".env-title", has_text="BusyBox").click()  # anywhere on the card
    expect(page.get_by_role("radio", name="BusyBox 1.37")).to_be_checked()
    page.get_by_role("radio", name="Debian 12").check()
    expect(page.locator("[data-so-far]")).to_contain_text("Debian 12")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("radio", name="Debian 13")).to_be_checked()
    expect(page.get_by_text("Terminal", exact=True)).to_have_count(0)  # every image has it
    assert violations(page) == []


def test_without_javascript_environments_can_be_chosen(log_in: LogIn, cluster: Cluster) -> None:
    log_in(WHO)
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/new")
    page.locator(".env-title", has_text="BusyBox").click()
    expect(page.get_by_role("radio", name="BusyBox 1.37")).to_be_checked()
    page.get_by_role("link", name="Resources").click()
    expect(page.locator("#title-resources")).to_be_in_viewport()


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_forty_environments_stay_pleasant(
    browser: Browser, many: str, picture: Picture, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(f"{many}/login?next=/sessions/new")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORDS["alice"])
    page.get_by_role("button", name="Log in").click()
    cards = page.locator(".env-card")
    expect(cards).to_have_count(40)
    expect(cards.locator("visible=true")).to_have_count(12)
    picture(page, f"wizard-forty-{width}")
    assert page.evaluate("document.documentElement.scrollHeight") < (2700 if width < 500 else 1450)
    search = page.get_by_label("Search the environments")
    search.fill("tool 33")
    expect(cards.locator("visible=true")).to_have_count(1)
    search.fill("nothing like it")
    none = "No environment has these words in its name, description or main packages."
    expect(page.get_by_text(none)).to_be_visible()
    search.fill("")
    page.get_by_role("button", name="Show all 40 environments").click()
    expect(cards.locator("visible=true")).to_have_count(40)
    expect(cards.nth(12).get_by_role("radio").first).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []
    context.close()
