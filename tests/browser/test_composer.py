"""A researcher composes a job: the editor, check, the command, submission, templates."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import THEMES, show, violations
from tests.browser.conftest import LogIn, Picture
from tests.support.browser_composer import composed_script, write_script
from tests.support.cluster import Cluster

WIDTHS = (320, 390, 768, 1280)
# Chromium itself writes style attributes when text replaces all of an editable element; the policy
# ignores them, and CodeMirror replaces these elements.
POLICY = """document.addEventListener("securitypolicyviolation", (event) => {
    const rule = event.effectiveDirective;
    if (rule !== "style-src-attr") console.log(`policy: ${rule}`);
})"""
SCRIPT = '#!/bin/bash\nfor i in 1 2; do echo "$i"; done # note\n'


@pytest.fixture
def composer(log_in: LogIn, cluster: Cluster) -> Iterator[Page]:
    """The composer, in alice's browser; the page's own policy must not forbid anything."""
    page = log_in("alice")
    refused: list[str] = []
    page.add_init_script(POLICY)
    page.on("console", lambda m: refused.append(m.text) if m.text.startswith("policy:") else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())  # leaving without submitting
    page.goto(f"{cluster.url}/jobs/new")
    expect(page.get_by_role("textbox", name="Script", exact=True)).to_be_visible()
    yield page
    assert refused == []


def test_the_editor_highlights_indents_and_can_be_left(composer: Page) -> None:
    write_script(composer, SCRIPT)
    assert composed_script(composer) == SCRIPT
    keyword = composer.locator(".cm-line span", has_text=re.compile("^for$"))
    colour = keyword.evaluate("(element) => getComputedStyle(element).color")
    plain = composer.locator(".cm-content").evaluate("(e) => getComputedStyle(e).color")
    assert colour != plain
    composer.keyboard.press("Tab")
    assert composed_script(composer) == f"{SCRIPT}    "
    composer.keyboard.press("Escape")
    composer.keyboard.press("Tab")
    expect(composer.get_by_label("Arguments")).to_be_focused()


def test_check_and_command_keep_what_was_entered(composer: Page) -> None:
    write_script(composer, SCRIPT)
    composer.get_by_label("Memory on each node").fill("100 MB")
    composer.get_by_label("Job name").fill("it's mine")
    composer.get_by_role("button", name="Show the command").click()
    shown = composer.get_by_label("The command", exact=True)
    expect(shown).to_contain_text("slipway sbatch")
    expect(shown).to_contain_text("--mem=100M")
    composer.get_by_role("button", name="Check", exact=True).click()
    expect(composer.get_by_text("Slurm accepts this job")).to_be_visible()
    expect(composer.locator(".news pre")).to_contain_text(" UTC")
    assert composed_script(composer) == SCRIPT
    expect(composer.get_by_label("Job name")).to_have_value("it's mine")
    composer.get_by_role("textbox", name="Script", exact=True).click()
    composer.keyboard.press("Control+z")  # its history survived both responses
    assert composed_script(composer) == "#!/bin/bash\n\n"


def test_a_wrong_field_is_named_and_nothing_is_lost(composer: Page) -> None:
    write_script(composer, "echo\n")
    composer.get_by_label("Array").fill("x")
    composer.get_by_role("button", name="Submit the job").click()
    expect(composer.locator("#error-script")).to_contain_text("Begin the first line with #!")
    expect(composer.locator("#error-array")).to_contain_text("Write task numbers")
    assert composed_script(composer) == "echo\n"
    assert violations(composer) == []


def test_a_job_is_submitted_and_its_page_opens(composer: Page, picture: Picture) -> None:
    write_script(composer, SCRIPT)
    composer.get_by_label("Memory on each node").fill("100 MB")
    picture(composer, "composer")
    composer.get_by_role("button", name="Submit the job").click()
    composer.wait_for_url(re.compile(r"/jobs/(submitted/)?\d+$"))
    composer.wait_for_url(re.compile(r"/jobs/\d+$"))


def test_a_template_is_saved_and_used(composer: Page, cluster: Cluster) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    write_script(composer, SCRIPT)
    composer.get_by_text("Save this as a job template").click()
    composer.get_by_label("Name of the template").fill(name)
    composer.get_by_role("button", name="Save the template").click()
    expect(composer.get_by_text(f"Saved as {name}.")).to_be_visible()
    composer.goto(f"{cluster.url}/jobs/templates")
    assert violations(composer) == []
    composer.get_by_role("link", name=f"Use {name}").click()
    expect(composer.get_by_role("textbox", name="Script", exact=True)).to_be_visible()
    assert composed_script(composer) == SCRIPT
    composer.goto(f"{cluster.url}/jobs/templates")
    composer.get_by_label(f"More for {name}", exact=True).click()
    composer.get_by_label(f"Delete {name}", exact=True).click()
    composer.get_by_role("button", name="Delete the job template").click()
    expect(composer.get_by_role("heading", name=name)).to_have_count(0)


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_accessible_in_light_and_dark(composer: Page, theme: str) -> None:
    show(composer, "light" if theme == "light" else "dark")
    assert violations(composer) == []


def test_it_fits_every_width(composer: Page) -> None:
    for width in WIDTHS:
        composer.set_viewport_size({"width": width, "height": 800})
        assert composer.evaluate("document.documentElement.scrollWidth") == width


def test_it_works_without_a_script(log_in: LogIn, cluster: Cluster) -> None:
    log_in("alice")
    page = log_in("alice", java_script_enabled=False)
    page.goto(f"{cluster.url}/jobs/new")
    page.get_by_label("Script text").fill(SCRIPT)
    page.get_by_label("Memory on each node").fill("100 MB")
    page.get_by_role("button", name="Check", exact=True).last.click()
    expect(page.get_by_text("Slurm accepts this job")).to_be_visible()
    expect(page.get_by_label("Script text")).to_have_value(SCRIPT)
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url(re.compile(r"/jobs/(submitted/)?\d+$"))
