"""The site's accent colour: its contrast, and the colours derived from it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Scheme = Literal["light", "dark"]
MIN_CONTRAST = 4.5
"""The contrast that text of normal size needs (WCAG 2, level AA)."""
WHITE, BLACK = "#ffffff", "#000000"
BACKGROUNDS: dict[Scheme, tuple[str, ...]] = {
    "light": ("#ffffff", "#eef2f4"),
    "dark": ("#121f27", "#0b151b"),
}
"""Backgrounds of links: cards and pages of static/base.css."""


class Accent(NamedTuple):
    """A colour for links and buttons, with the colours derived from it."""

    mark: str
    hover: str
    on_mark: str
    """Text on buttons."""
    soft: str
    """Background of selected elements."""


def contrast(colour: str, other: str) -> float:
    """The contrast of two colours such as "#0b6478", from 1 to 21."""
    bright, dim = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def accent_problem(colour: str, scheme: Scheme) -> str:
    """Why a colour cannot be read on pages of this scheme; "" if it can."""
    worst = min(BACKGROUNDS[scheme], key=lambda background: contrast(colour, background))
    ratio = contrast(colour, worst)
    if ratio >= MIN_CONTRAST:
        return ""
    way = "darker" if scheme == "light" else "lighter"
    return (
        f"{colour} has a contrast of {ratio:.1f}:1 on {scheme} pages ({worst}); links and buttons "
        f"need {MIN_CONTRAST}:1. Choose a {way} colour"
    )


def accent(colour: str, scheme: Scheme) -> Accent:
    """The colours of links and buttons for a colour that can be read."""
    away, card = (BLACK, WHITE) if scheme == "light" else (WHITE, BACKGROUNDS["dark"][0])
    hover = _mixed(colour, away, 0.22)
    on_mark = max(
        (WHITE, BLACK), key=lambda text: min(contrast(text, colour), contrast(text, hover))
    )
    # Links are also shown on selected elements: mix in as much colour as remains readable.
    soft = next(
        (
            mixed
            for part in (0.12, 0.06, 0.03)
            if contrast(colour, mixed := _mixed(card, colour, part)) >= MIN_CONTRAST
        ),
        card,
    )
    return Accent(colour, hover, on_mark, soft)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    """The relative luminance, as WCAG 2 defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in _rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mixed(colour: str, other: str, part: float) -> str:
    """Mix two colours; `part`: the share of `other`, from 0 to 1."""
    mixed = (a + (b - a) * part for a, b in zip(_rgb(colour), _rgb(other), strict=True))
    return "#" + "".join(f"{round(value):02x}" for value in mixed)
