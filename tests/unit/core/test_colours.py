"""The site's own colour: contrast, and the colours that go with it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from portal.config.web import WebSettings
from portal.core.colours import BACKGROUNDS, MIN_CONTRAST, Scheme, accent, accent_problem, contrast


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("colour", "scheme"), [("#0b6478", "light"), ("#67c5d4", "dark")])
def test_all_pairs_can_be_read(colour: str, scheme: Scheme) -> None:
    assert accent_problem(colour, scheme) == ""
    found = accent(colour, scheme)
    for background in (*BACKGROUNDS[scheme], found.soft):
        assert contrast(found.mark, background) >= MIN_CONTRAST
    assert contrast(found.on_mark, found.mark) >= MIN_CONTRAST
    assert contrast(found.on_mark, found.hover) >= MIN_CONTRAST


@pytest.mark.parametrize(("field", "colour"), [("accent", "#67c5d4"), ("accent_dark", "#0b6478")])
def test_the_settings_name_a_colour_that_cannot_be_read(field: str, colour: str) -> None:
    with pytest.raises(ValidationError, match="contrast") as caught:
        WebSettings.model_validate({field: colour})
    assert caught.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize("colour", ["red", "#12345", "#0b6478;}"])
def test_only_colours_are_accepted(colour: str) -> None:
    with pytest.raises(ValidationError):
        WebSettings.model_validate({"accent": colour})
