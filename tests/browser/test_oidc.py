"""Log-in by OpenID Connect in Chromium: a certified provider, HAProxy, and a portal over fakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from portal.config.oidc import OidcSettings
from tests.browser import openid
from tests.browser.conftest import Picture
from tests.support.fakes import World
from tests.unit.web.proxied_portal import running_portal

GROUPS = {"admin": ["hpc-admins", "staff"], "alice": ["staff"]}


@dataclass(frozen=True)
class Site:
    """The portal and its provider."""

    url: str
    issuer: str
    world: World


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "secret").write_text(openid.SECRET)
    provider = openid.provider()
    with running_portal(folder, "ports") as portal:
        url = portal.settings.web.own_origin
        oidc = OidcSettings(
            issuer=provider.issuer,
            client_id=openid.CLIENT,
            client_secret_file=str(folder / "secret"),
            groups_claim="groups",
            allowed_groups=("staff",),
            admin_groups=("hpc-admins",),
        )
        slurm = portal.settings.slurm.model_copy(update={"admins": []})
        changes = {"oidc": oidc, "slurm": slurm}
        portal.settings = portal.settings.model_copy(update=changes)
        world = portal.new_world()
        with provider.running(url, GROUPS):
            yield Site(url, provider.issuer, world)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        context.set_default_timeout(30_000)
        yield context


def enter(page: Page, name: str) -> None:
    """Log in at the provider's own page."""
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.locator("button[type=submit]").click()


def log_in(site: Site, context: BrowserContext, name: str, path: str = "/sessions") -> Page:
    site.world.clock.now = datetime.now(UTC)  # tokens carry the time
    page = context.new_page()
    page.goto(site.url + path)
    page.get_by_role("link", name="University login").click()
    enter(page, name)
    page.wait_for_url(site.url + path)
    return page


def test_the_login_page_has_both_ways(
    site: Site, context: BrowserContext, picture: Picture
) -> None:
    page = context.new_page()
    for colours in ("light", "dark"):
        for width in (1280, 320):
            page.emulate_media(color_scheme=colours)
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{site.url}/login")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            picture(page, f"login-oidc-{colours}-{width}")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("wonderland")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{site.url}/sessions")


def test_somebody_comes_in_and_logs_out_there_too(site: Site, context: BrowserContext) -> None:
    page = log_in(site, context, "admin", "/admin/people")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.locator("[data-account-menu], .account-menu summary, .account summary").first.click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{site.issuer}/session/end*")
    page.get_by_role("button", name="Yes, sign me out").click()
    page.wait_for_url(f"{site.url}/login")
    expect(page.get_by_text("You are logged out.")).to_be_visible()
    page.get_by_role("link", name="University login").click()
    expect(page.locator("[name=login]")).to_be_visible()  # not logged in there any more


def test_strangers_are_told_why(site: Site, context: BrowserContext) -> None:
    site.world.clock.now = datetime.now(UTC)
    page = context.new_page()
    page.goto(f"{site.url}/login")
    page.get_by_role("link", name="University login").click()
    enter(page, "bob")
    expect(page.get_by_role("alert")).to_have_text(
        "You are in none of the groups that may use this portal."
    )
    page = context.new_page()
    page.goto(f"{site.url}/login/oidc/callback?state=x&code=y")
    expect(page.get_by_role("alert")).to_contain_text("was used before, or has expired")


def test_a_page_goes_on_after_a_log_in_in_another_tab(site: Site, context: BrowserContext) -> None:
    page = log_in(site, context, "alice", "/jobs/new")
    site.world.services.logins.revoke_all("alice", "alice")
    again = page.evaluate(
        """async () => {
            const page = await import(document.querySelector("script[type=module]").src);
            page.send((headers) => fetch("/jobs/new", { headers })).then(
                (answer) => { document.body.dataset.outcome = answer.status; });
        }"""
    )
    assert again is None
    site.world.clock.now = datetime.now(UTC)
    dialog = page.get_by_role("dialog")
    with context.expect_page() as opened:
        dialog.get_by_role("link", name="University login").click()
    expect(dialog).to_be_hidden()  # the provider knows the user still
    expect(page.locator("body[data-outcome='200']")).to_be_attached()
    assert opened.value.is_closed() or "/login/done" in opened.value.url


def test_a_form_that_was_sent_too_late_is_kept(site: Site, context: BrowserContext) -> None:
    page = log_in(site, context, "alice", "/jobs/new")
    site.world.services.logins.revoke_all("alice", "alice")
    page.evaluate(
        """() => {
            const form = document.createElement("form");
            form.method = "post"; form.action = "/jobs/new";
            const fields = { csrf_token: document.querySelector("[name=csrf_token]").value,
                who: "alice", source: "editor", script: "#!/bin/sh\\necho kept", args: "",
                key: "k" };
            for (const [name, value] of Object.entries(fields)) {
                const field = document.createElement("textarea");
                field.name = name; field.value = value; form.append(field);
            }
            document.body.append(form); form.submit();
        }"""
    )
    site.world.clock.now = datetime.now(UTC)
    with context.expect_page():
        page.get_by_role("link", name="University login").click()
    expect(page.get_by_text("What you entered is kept.")).to_be_visible()
    page.get_by_role("button", name="Go on", exact=True).click()
    expect(page.locator("[name=script]")).to_have_value("#!/bin/sh\necho kept")


def test_logging_out_there_logs_out_here(site: Site, context: BrowserContext) -> None:
    page = log_in(site, context, "alice")
    there = context.new_page()
    there.goto(f"{site.issuer}/session/end")
    there.get_by_role("button", name="Yes, sign me out").click()
    expect(there.get_by_text("Sign-out Success")).to_be_visible()
    page.goto(f"{site.url}/sessions")
    page.wait_for_url(f"{site.url}/login?*")
