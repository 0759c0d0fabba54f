"""axe-core, injected as a browser's inspector would: the page's own CSP forbids scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from playwright.sync_api import Page, ViewportSize

from tests.support.cluster import wait_for
from tests.support.paths import ROOT

AXE = ROOT / "portal" / "web" / "static" / "built" / "axe.min.js"

_RUN = """async ([where, rules]) => (await axe.run(where, rules.length
    ? {runOnly: {type: 'rule', values: rules}} : {})).violations.map(
    (v) => `${v.id}: ` + v.nodes.map(
        (n) => `${n.html} (${n.any[0]?.message})`).join(' | ').slice(0, 900))"""

COLOURS = ("color-contrast", "link-in-text-block")
"""The rules about colours: all that a theme changes."""

THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
NARROW: ViewportSize = {"width": 320, "height": 844}

_SETTLED = """() => Promise.race([
    new Promise((enough) => setTimeout(enough, 1500)),
    Promise.allSettled(document.getAnimations()
        .filter((one) => one.effect.getComputedTiming().endTime !== Infinity)
        .map((one) => one.finished))])"""


def settled(page: Page) -> None:
    """Wait until colour transitions and finite animations have ended."""
    page.wait_for_timeout(400)  # for animations that begin a moment after their cause
    page.evaluate(_SETTLED)


def violations(page: Page, where: str = "html", rules: Sequence[str] = ()) -> list[str]:
    """axe-core's findings for a page, or a part of it, once all transitions have ended.

    Of some rules, or of all.
    """
    settled(page)
    if not page.evaluate("'axe' in window"):  # each time it takes a busy browser a second
        page.evaluate(AXE.read_text())
    found: list[str] = page.evaluate(_RUN, [where, list(rules)])
    return found


def show(page: Page, theme: Literal["light", "dark"]) -> None:
    """Switch the system's theme, and wait until the page follows it."""
    page.bring_to_front()  # behind another page, transitions of colours may stand still
    page.emulate_media(color_scheme=theme)
    # Our pages' script follows the system's theme a moment later.
    page.wait_for_function(
        "(theme) => [undefined, theme].includes(document.documentElement.dataset.bsTheme)",
        arg=theme,
    )


def clean_in_both_themes(page: Page, where: str = "body") -> None:
    """No findings in the light or dark theme."""
    for theme in THEMES:
        show(page, theme)
        found = violations(page, where, () if theme == THEMES[0] else COLOURS)
        assert found == [], f"{theme}: {found}"
    page.emulate_media(color_scheme="light")


def _within(page: Page, width: int) -> bool:
    wide = int(page.evaluate("document.documentElement.scrollWidth"))
    return wide <= width


def fits(page: Page, *widths: int) -> None:
    """No horizontal scrolling in windows of these widths."""
    before = page.viewport_size
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        # A busy browser updates the layout a moment later.
        wait_for(f"{width} pixels to be enough", partial(_within, page, width), 3)
    if before:
        page.set_viewport_size(before)


def shown(page: Page, picture: Callable[[Page, str], None], name: str) -> None:
    """No finding of axe's in both themes, no sideways scrolling at 320 px, and pictures of all."""
    clean_in_both_themes(page)
    fits(page, 320, 768)
    wide = page.viewport_size
    assert wide is not None
    for theme in THEMES:
        show(page, theme)
        picture(page, f"{name}-{theme}")
        page.set_viewport_size(NARROW)
        picture(page, f"{name}-{theme}-narrow")
        page.set_viewport_size(wide)
    show(page, "light")
