"""The cards of the wizard's first step."""

from __future__ import annotations

from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.web.pages.launch.environments import environment_cards

APPS = {
    "lab": AppSpec(name="lab", title="Lab", icon="journal-code", script="lab", detect=("lab",)),
    "terminal": AppSpec(name="terminal", title="Terminal", script="ttyd"),
}


def image(environment: str, version: str, title: str, **more: object) -> Image:
    """An image with a title."""
    return Image.model_validate(
        {"environment": environment, "version": version, "path": "/x", "title": title} | more
    )


CATALOG = Catalog(
    apps=APPS,
    images=(
        image("cpp", "12", "C++ 12"),
        image("debian", "13", "Debian 13"),
        image("python", "3.13", "Python 3.13", default=True, default_app="lab"),
        image("python", "3.11", "Python 3.11", default_app="lab"),
    ),
)


def order(*used: tuple[str, str]) -> list[str]:
    """The titles of the cards."""
    return [card.title for card in environment_cards(CATALOG, used, None)]


def test_the_default_is_first_for_a_new_user() -> None:
    assert order() == ["Python", "C++", "Debian"]


def test_what_was_used_last_is_before_the_default() -> None:
    assert order(("debian", "13"), ("gone", "1")) == ["Debian", "Python", "C++"]


def test_a_card_proposes_the_version_used_last() -> None:
    card = environment_cards(CATALOG, [("python", "3.11")], None)[0]
    assert [chip.label for chip in card.versions if chip.proposed] == ["3.11"]
    assert [chip.title for chip in card.versions] == ["Python 3.13", "Python 3.11"]


def test_only_apps_that_distinguish_an_image_are_shown() -> None:
    cards = {card.title: card for card in environment_cards(CATALOG, [], None)}
    assert [app.title for app in cards["Python"].versions[0].apps] == ["Lab"]
    assert list(cards["Debian"].versions[0].apps) == []


def test_the_icon_is_the_default_apps() -> None:
    icons = [card.icon for card in environment_cards(CATALOG, [], None)]
    assert icons == ["journal-code", "box", "box"]


def test_search_finds_titles_versions_and_apps() -> None:
    words = environment_cards(CATALOG, [], None)[0].words
    assert all(word in words for word in ("python", "3.11", "lab"))


def test_search_finds_the_main_packages() -> None:
    catalog = Catalog(apps=APPS, images=(image("lab", "1", "Lab", packages=("numpy", "cv2")),))
    assert {"numpy", "cv2"} <= set(environment_cards(catalog, [], None)[0].words.split())


def test_numbers_in_titles_are_sorted_as_numbers() -> None:
    images = [image(f"e{n}", "1", f"Lab {n} 1", environment_title=f"Lab {n}") for n in (0, 12, 9)]
    cards = environment_cards(Catalog(apps=APPS, images=tuple(images)), [], None)
    assert [card.title for card in cards] == ["Lab 0", "Lab 9", "Lab 12"]
