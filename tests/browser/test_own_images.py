"""An image of one's own in the wizard, from a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster
from tests.support.own_images import BUSYBOX, FOLDER, as_alice


@pytest.fixture
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """Alice's API client; she has an image of her own."""
    found = make_api("alice")
    as_alice(cluster, f"mkdir -p {FOLDER}; cp {BUSYBOX} {FOLDER}/mine.sif")
    yield found
    found.clean_all()
    as_alice(cluster, f"rm -rf {FOLDER}")


SIZE: ViewportSize = {"width": 1440, "height": 900}


def check(page: Page, name: str, picture: Picture) -> None:
    """No findings of axe's in either theme and at the width of a phone."""
    for scheme, width in (("dark", 1280), ("light", 390), ("light", 1280)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 800})
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"{name}-{scheme}-{width}")
    page.set_viewport_size(SIZE)


def test_an_own_image_is_launched_from_the_wizard(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in("alice")
    page.get_by_role("link", name="Start a session").first.click()
    field = page.get_by_label("Your own image", exact=True).and_(page.get_by_role("combobox"))
    expect(field).to_be_hidden()
    page.locator("label[for=image-own]").first.click()
    expect(field).to_be_visible()
    field.fill("/etc/passwd.sif")
    page.get_by_role("button", name="Next").click()
    wrong = page.locator("#error-image")
    expect(wrong).to_contain_text("Choose a file in one of your storage folders")
    page.locator("[data-own-file='images/mine.sif']").last.click()
    expect(field).to_have_value("images/mine.sif")
    expect(wrong).to_be_hidden()
    check(page, "own-image", picture)
    page.get_by_role("button", name="Next").click()
    page.locator(".steps [data-go=review]").click()
    expect(page.locator("#review-text")).to_contain_text("images/mine.sif")
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").click()
    expect(page.get_by_role("row", name="Own image mine.sif")).to_be_visible()
    session = api.list(limit=1)[0]
    assert session["image"] == "images/mine.sif"
    api.wait_state(session["id"], "RUNNING")


def test_a_login_for_a_registry_is_saved_and_deleted(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in("alice")
    page.locator("#account-menu summary").click()
    page.get_by_role("link", name="Registry logins").click()
    expect(page.get_by_text("You have saved none")).to_be_visible()
    page.get_by_label("Registry", exact=True).select_option("registry.example.org")
    page.get_by_label("User name").fill("two words")
    page.get_by_label("Password or access token").fill("open sesame")
    page.get_by_role("button", name="Save the login").click()
    expect(page.get_by_text("Use printable characters without blanks")).to_be_visible()
    expect(page.get_by_label("User name")).to_be_focused()
    expect(page.get_by_label("Password or access token")).to_have_value("")
    page.get_by_label("User name").fill("team")
    page.get_by_label("Password or access token").fill("open sesame")
    page.get_by_role("button", name="Save the login").click()
    expect(page.get_by_role("row", name="registry.example.org team")).to_contain_text("never")
    check(page, "registries", picture)
    page.get_by_role("button", name="Delete the login for registry.example.org").click()
    expect(page.get_by_text("You have saved none")).to_be_visible()
