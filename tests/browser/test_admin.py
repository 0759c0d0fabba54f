"""The administrators' pages in a browser: both themes, narrow, keyboard and without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster

WIDE, NARROW = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
SMALL = {
    "title": "Small",
    "description": "To look around",
    "resources": {"cpus": 1, "memory": "2g"},
}


@pytest.fixture
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator's API client; every rule is removed afterwards."""
    found = make_api("admin")
    yield found
    for name in ("small", "medium", "teaching"):
        found("DELETE", f"/admin/templates/{name}")
    for image in found.ask("GET", "/admin/images")["images"]:
        path = f"/admin/images/{image['environment']}/{image['version']}"
        found("PUT", path, json={"seen_by": "everybody"})
    found("PUT", "/admin/caps", json={})


def check_page(page: Page, picture: Picture, name: str) -> None:
    """Screenshots and axe-core in both themes, wide and narrow."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for word, size in (("", WIDE), ("-narrow", NARROW)):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            picture(page, f"admin-{name}-{scheme}{word}")
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]


def test_templates(log_in: LogIn, admin: Api, picture: Picture) -> None:
    page = log_in("admin")
    page.get_by_role("link", name="Administration").click()
    expect(page.get_by_text("No templates yet")).to_be_visible()
    check_page(page, picture, "templates-none")
    page.get_by_role("link", name="Create the first one").click()
    page.get_by_label("Title").fill("Teaching")
    page.get_by_label("Name").fill("two words")
    page.get_by_label("CPU cores").fill("2")
    page.get_by_label("Memory", exact=True).fill("plenty")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#error-resources-memory")).to_contain_text("Write a size")
    expect(page.locator("#error-name")).to_be_visible()
    expect(page.get_by_label("Name")).to_be_focused()
    check_page(page, picture, "template-wrong")
    page.get_by_label("Memory", exact=True).fill("1.5 GB")
    page.get_by_label("Name").fill("teaching")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved “Teaching”.")
    assert admin.ask("GET", "/admin/templates/teaching")["resources"]["memory"] == "1536m"
    medium = SMALL | {"title": "Medium", "time_limit": 480}
    admin.ask("PUT", "/admin/templates/small", json=SMALL)
    admin.ask("PUT", "/admin/templates/medium", json=medium)
    page.reload()
    page.get_by_role("button", name="Move Medium up").click()
    page.get_by_role("button", name="Move Medium up").click()
    names = page.locator("[data-template] strong")
    expect(names).to_have_text(["Medium", "Teaching", "Small"])
    check_page(page, picture, "templates")
    page.get_by_role("link", name="Delete Teaching").click()
    dialog = page.get_by_role("dialog", name="Delete “Teaching”?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    check_page(page, picture, "delete")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Delete Teaching").press("Enter")
    dialog.get_by_role("button", name="Delete").click()
    expect(names).to_have_text(["Medium", "Small"])


def test_images(log_in: LogIn, admin: Api, picture: Picture) -> None:
    page = log_in("admin")
    page.goto(page.url.replace("/sessions", "/admin/images"))
    page.locator(".act a").first.click()
    expect(page.get_by_label("Users", exact=True)).to_be_hidden()
    page.get_by_role("radio", name="Some").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#error-accounts")).to_have_text("Name at least one account or user")
    page.get_by_label("Users", exact=True).fill("bob, nobody-here")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#error-users")).to_have_text("Slurm has no user named nobody-here")
    check_page(page, picture, "image-wrong")
    page.get_by_label("Users", exact=True).fill("bob")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-image]").first).to_contain_text("users bob")
    check_page(page, picture, "images")


def test_limits_and_the_cap(log_in: LogIn, admin: Api, picture: Picture) -> None:
    page = log_in("admin")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(page.url.replace("/sessions", "/admin/limits"))
    normal = page.locator("[data-limited=normal]")
    expect(normal).to_contain_text("3 cores and 3 GB")
    command = "sacctmgr modify qos normal set MaxTRESPerUser=cpu=3,mem=3G"
    normal.get_by_role("button", name=f"Copy {command}").click()
    expect(page.locator("#announce")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == command
    normal.get_by_text("Limits that are not set").click()
    page.get_by_label("Largest shared memory").fill("2 GB")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Largest shared memory")).to_have_value("2 GB")
    normal.get_by_text("Limits that are not set").click()
    check_page(page, picture, "limits")


def test_the_journal(log_in: LogIn, admin: Api, picture: Picture) -> None:
    admin.ask("PUT", "/admin/caps", json={"max_shared_memory": "1g"})
    page = log_in("admin")
    page.goto(page.url.replace("/sessions", "/admin/journal"))
    check_page(page, picture, "journal")
    page.get_by_label("Who").fill("admin")
    page.get_by_label("Did").select_option("Changed the caps")
    page.get_by_role("button", name="Show").click()
    row = page.locator("[data-action]").first
    expect(row).to_contain_text("shared memory at most 1 GB; before: no cap on shared memory")
    page.get_by_label("Containing").fill("nothing is like this")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    check_page(page, picture, "journal-none")


def test_it_works_without_scripts(
    browser: Browser, log_in: LogIn, cluster: Cluster, admin: Api
) -> None:
    admin.ask("PUT", "/admin/templates/small", json=SMALL)
    cookies = log_in("admin").context.storage_state()
    context = browser.new_context(java_script_enabled=False, storage_state=cookies)
    page = context.new_page()
    page.goto(f"{cluster.url}/admin/templates")
    page.get_by_role("link", name="Delete Small").click()
    page.get_by_role("button", name="Delete").click()
    assert "Deleted “Small”." in page.content()
    context.close()


def test_other_users_see_no_link(log_in: LogIn, cluster: Cluster) -> None:
    page = log_in("bob")
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)
    answer = page.goto(f"{cluster.url}/admin/journal")
    assert answer is not None
    assert answer.status == 404
