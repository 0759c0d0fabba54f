"""The main packages of an image, and the search in all of them."""

from __future__ import annotations

import pytest

from portal.core.images.inside import (
    MOST_KEY,
    key_packages,
    matching,
    search_words,
    short_version,
)
from portal.core.images.inventory import Kind, Package

FOUND = (
    Package("deb", "libc6", "2.41-12"),
    Package("deb", "gcc-14", "14.2.0-19"),
    Package("deb", "python3", "3.13.5-1"),
    Package("pip", "numpy", "2.3.1"),
    Package("pip", "Scikit_Learn", "1.7.0"),
    Package("pip", "torch", "2.6.0+cpu"),
    Package("pip", "numpy-financial", "1.0.0"),
)


def test_languages_are_first_then_what_people_choose_an_image_for() -> None:
    names = [one.name for one in key_packages(FOUND)]
    assert names == ["python3", "torch", "numpy", "Scikit_Learn", "gcc-14"]


def test_no_image_shows_more_than_a_few() -> None:
    many = [Package("deb", f"gcc-{number}", "1") for number in range(40)]
    assert len(key_packages(many)) == MOST_KEY
    assert key_packages([]) == []


def test_packages_are_found_by_other_words_as_well() -> None:
    words = search_words(FOUND)
    assert {"torch", "pytorch", "sklearn", "numpy", "c++ compiler"} <= set(words)
    assert "libc6" not in words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("NUMPY", ["numpy", "numpy-financial"]),
        ("scikit-learn", ["Scikit_Learn"]),
        ("num fin", ["numpy-financial"]),
        ("nothing", []),
    ],
)
def test_the_search_is_for_words_in_names(text: str, names: list[str]) -> None:
    assert [one.name for one in matching(FOUND, text)] == names


def test_without_a_text_all_are_listed_by_name() -> None:
    assert [one.name for one in matching(FOUND, "")][:3] == ["gcc-14", "libc6", "numpy"]


@pytest.mark.parametrize(
    ("kind", "version", "short"),
    [
        ("deb", "4:14.2.0-19", "14.2.0"),
        ("deb", "1.5.3+dfsg-3", "1.5.3"),
        ("apk", "1.37.0-r1", "1.37.0"),
        ("deb", "20230401", "20230401"),
        ("pip", "2.6.0+cpu", "2.6.0+cpu"),
    ],
)
def test_versions_of_distributions_are_shortened(kind: Kind, version: str, short: str) -> None:
    assert short_version(Package(kind, "x", version)) == short
