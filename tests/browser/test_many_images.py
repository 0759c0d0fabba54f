"""The wizard of a site with a hundred environments: found quickly, and with what is inside."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from werkzeug.serving import make_server

from portal.web.app import create_app
from tests.browser.axe import violations
from tests.browser.conftest import Picture
from tests.support.fakes import PASSWORDS, make_world
from tests.unit.web.conftest import make_settings

MANY = 100
SUBJECTS = ("Astronomy", "Botany", "Chemistry", "Data science", "Earth observation", "Genomics")


def environments() -> dict[str, dict[str, tuple[str, object]]]:
    """A hundred environments with two versions each, with a description and packages."""
    return {
        f"many{number:02}": {version: image(number, version) for version in ("2.0", "1.9")}
        for number in range(MANY)
    }


def image(number: int, version: str) -> tuple[str, object]:
    """The description of one image, and what is inside."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    text = (
        f'title = "{subject} {number} {version}"\nenvironment_title = "{subject} {number}"\n'
        f'description = "Everything for {subject.lower()}: libraries, data readers, plots, and '
        'a text that is longer than two lines in its card."\n'
    )
    packages = [("pip", f"library-{n}", f"{n}.0") for n in range(400)]
    packages.append(("pip", "xgboost" if number == 77 else "numpy", "2.1.4"))
    inventory = {
        "environment": f"many{number:02}", "version": version, "title": subject,
        "sources": f"{number:064}", "origin": "trixie", "system": "Debian GNU/Linux 13 (trixie)",
        "packages": packages, "digest": f"{number:064}", "size": 700 << 20,
        "built": "2026-11-02T03:04:05Z", "apptainer": "1.4.5", "architecture": "amd64",
    }  # fmt: skip
    return text, inventory


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A portal of its own, since other tests' clusters share their images; yields its address."""
    folder = tmp_path_factory.mktemp("site")
    for name, versions in environments().items():
        for version, (text, inventory) in versions.items():
            place = folder / "images" / name / version
            place.mkdir(parents=True)
            (place / "image.toml").write_text(text)
            (place / "image.json").write_text(json.dumps(inventory))
            (place / "image.sif").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://localhost:{taken.getsockname()[1]}"
        world = make_world(make_settings(folder, public_url=address), images=folder / "images")
        portal = create_app(world.services)
        server = make_server("127.0.0.1", 0, portal, threaded=True, fd=os.dup(taken.fileno()))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address
        server.shutdown()


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """The wizard's first step."""
    context = browser.new_context(base_url=site)
    found = context.new_page()
    found.set_viewport_size({"width": 1280, "height": 800})
    found.goto("/sessions/new")
    found.get_by_label("User name").fill("alice")
    found.get_by_label("Password").fill(PASSWORDS["alice"])
    found.get_by_role("button", name="Log in").click()
    expect(found.get_by_role("button", name="Next")).to_be_visible()
    yield found
    context.close()


def cards(page: Page) -> Locator:
    """The environments that are shown."""
    return page.locator("[data-environments] > .env-card:not([hidden])")


def test_a_hundred_environments(page: Page, picture: Picture) -> None:
    size = page.evaluate("async () => (await (await fetch('/sessions/new')).text()).length")
    assert size / MANY < 6 * 1024
    assert cards(page).count() <= 13
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        picture(page, f"many-{scheme}")

    # By a word of the description, a title's number, a package.
    search = page.get_by_role("searchbox", name="Search the environments")
    search.fill("chemistry 8")
    assert {text.split()[0] for text in cards(page).locator(".env-title").all_inner_texts()} == {
        "Chemistry"
    }
    search.fill("xgboost")
    expect(cards(page)).to_have_count(1)
    search.press("Enter")
    expect(cards(page).get_by_role("radio", checked=True)).to_have_count(1)
    expect(page.locator("[data-so-far]")).to_contain_text("Genomics 77")
    search.fill("nothing like this")
    expect(page.get_by_text("No environment has these words")).to_be_visible()
    search.press("Escape")
    expect(search).to_have_value("")
    expect(cards(page).first).to_be_visible()

    page.get_by_role("button", name="Show all").click()
    assert cards(page).count() >= MANY
    expect(page.locator(".env-card input:focus")).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 800})
    page.reload()
    expect(page.get_by_role("button", name="Next")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, "many-390")


def test_what_is_inside_is_one_click_away(page: Page, picture: Picture) -> None:
    page.get_by_role("searchbox", name="Search the environments").fill("xgboost")
    page.get_by_role("link", name="What is inside").locator("visible=true").click()
    dialog = page.get_by_role("dialog", name="What is inside")
    expect(dialog.get_by_role("heading", name="2.0")).to_be_visible()
    expect(dialog.get_by_role("list", name="Main packages")).to_have_text("xgboost 2.1.4")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        picture(page, f"inside-{scheme}")
    dialog.get_by_role("searchbox").fill("library-39")
    expect(dialog.locator("tbody tr")).to_have_count(11)
    page.set_viewport_size({"width": 390, "height": 800})
    assert violations(page) == []
    picture(page, "inside-390")
    page.keyboard.press("Escape")  # empties the search
    expect(dialog.locator("tbody tr")).to_have_count(401)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("[data-inside]:focus")).to_have_count(1)
