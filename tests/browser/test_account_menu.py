"""The account menu, the help page and the log-in page: by mouse, keyboard, without scripts."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.support.cluster import Cluster

WHO = "bob"


def test_the_menu_opens_and_closes_by_mouse_and_keyboard(log_in: LogIn, picture: Picture) -> None:
    page = log_in(WHO)
    menu = page.locator("#account-menu nav")
    name = page.locator("#account-menu summary")
    name.click()
    for link in ("Logins and API tokens", "SSH keys", "Presets", "Notifications", "Help"):
        expect(menu.get_by_role("link", name=link)).to_be_visible()
    clean_in_both_themes(page)
    picture(page, "account-menu")
    page.locator("h2").first.click()
    expect(menu).to_be_hidden()
    name.focus()
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("link", name="Logins and API tokens")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("button", name="Log out")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(name).to_be_focused()
    name.click()
    colours = menu.get_by_role("button", name="Colours: as on this computer")
    colours.click()
    expect(menu.get_by_role("button", name="Colours: light")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")
    page.evaluate("localStorage.clear()")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(menu).to_be_visible()
    fits(page, 390, 320)


def test_without_javascript_the_menu_leads_everywhere(log_in: LogIn, cluster: Cluster) -> None:
    log_in(WHO)
    page = log_in(WHO, java_script_enabled=False)
    for link, title in (("SSH keys", "SSH keys"), ("Notifications", "Notifications")):
        page.locator("#account-menu summary").click()
        page.locator("#account-menu").get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_role("button", name="Turn on")).to_have_count(0)


def test_help_is_readable_by_everybody(
    browser: Browser, cluster: Cluster, picture: Picture
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(f"{cluster.url}/login")
    page.get_by_role("link", name="Help").click()
    expect(page.get_by_role("heading", name="Keep your files")).to_be_visible()
    clean_in_both_themes(page)
    fits(page, 1440, 1024, 390, 320)
    picture(page, "help")
    page.get_by_role("link", name="Glossary").click()
    expect(page.get_by_text("Slurm calls it a partition")).to_be_in_viewport()
    context.close()


def test_the_log_in_page_shows_its_work_and_the_log_out(
    browser: Browser, cluster: Cluster, picture: Picture
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(f"{cluster.url}/login")

    # Read after the navigation: Playwright waits for it before it looks at the page again.
    page.evaluate(
        """() => new MutationObserver(([{ target }]) => sessionStorage.setItem("busy",
            target.closest("button[aria-busy]:disabled")?.textContent ?? sessionStorage.busy ?? ""))
            .observe(document.querySelector("form button"),
                {attributes: true, childList: true, subtree: true})"""
    )
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(cluster.password("admin"))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/sessions")
    assert page.evaluate("sessionStorage.busy") == "Checking…"
    page.locator("#account-menu summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("status").filter(has_text="You are logged out.")).to_be_visible()
    clean_in_both_themes(page)
    fits(page, 1440, 390, 320)
    picture(page, "logged-out")
    context.close()
