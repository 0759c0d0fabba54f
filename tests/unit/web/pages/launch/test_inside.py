"""What is inside an image: the page, its part for the dialog, the API."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.web.conftest import Api, Browser

PLACE = "/environments/python/3.13"
HTMX = {"HX-Request": "true"}


def test_the_form_links_to_every_version(alice: Browser) -> None:
    text = alice.get("/sessions/new").text
    for version in ("3.13", "3.12"):
        assert f'href="/environments/python/{version}"' in text


def test_the_page_has_facts_main_packages_and_all(alice: Browser) -> None:
    text = alice.get(PLACE).text
    for fact in ("Debian GNU/Linux 13", "300 MB", "2026-11-02", "trixie, GPU=no", "d" * 64):
        assert fact in text
    assert "<strong>python3</strong> 3.13.5</li>" in text
    assert "<td>libc6</td><td>2.41-12</td><td>Debian</td>" in text
    assert "2 Debian, 2 Python" in text
    assert text.count("300 MB") == 1  # the logo has a size of its own


def test_a_search_shows_only_what_matches(alice: Browser) -> None:
    part = alice.get(f"{PLACE}?packages=NumPy", headers=HTMX).text
    assert part.count("<td>numpy</td>") == 1
    assert "ipykernel" not in part
    assert "<html" not in part
    whole = alice.get(f"{PLACE}?packages=numpy").text
    assert 'value="numpy"' in whole
    assert "libc6" not in whole
    nothing = alice.get(f"{PLACE}?packages=<b>", headers=HTMX).text
    assert "No packages with “&lt;b&gt;” in the name" in nothing


def test_the_dialog_gets_the_part_without_the_page_around_it(alice: Browser) -> None:
    part = alice.get(PLACE, headers=HTMX).text
    assert "<html" not in part
    assert 'id="inside-title"' in part


def test_an_image_without_an_inventory_says_so(alice: Browser, api: Callable[[str], Api]) -> None:
    assert "There is no list of what is inside" in alice.get("/environments/python/3.12").text
    found = api("alice")("GET", "/environments/python/3.12").get_json()
    assert found["inventory"] is None


def test_the_api_names_all_packages(api: Callable[[str], Api]) -> None:
    found = api("alice")("GET", PLACE).get_json()
    assert (found["environment"], found["version"], found["retired"]) == ("python", "3.13", False)
    inside = found["inventory"]
    assert inside["size"] == 300 << 20
    assert inside["built"] == "2026-11-02T03:04:00+00:00"
    assert (inside["digest"], inside["recipe"]) == ("d" * 64, "5" * 64)
    assert inside["main_packages"][0] == {"name": "python3", "version": "3.13.5-1", "kind": "deb"}
    assert len(inside["packages"]) == 4


@pytest.mark.parametrize("place", ["/environments/python/9", "/environments/none/3.13"])
def test_what_is_not_there_is_404(place: str, alice: Browser, api: Callable[[str], Api]) -> None:
    assert alice.get(place).status_code == 404
    assert api("alice")("GET", place).status_code == 404


def test_an_image_that_is_hidden_from_a_person_is_as_good_as_missing(
    alice: Browser, api: Callable[[str], Api]
) -> None:
    rule = {"seen_by": "some", "users": ["bob"]}
    answer = api("admin")("PUT", "/admin/images/python/3.13", json=rule)
    assert answer.status_code == 200, answer.text
    assert alice.get(PLACE).status_code == 404
    hidden, missing = (api("alice")("GET", f"/environments/python/{v}") for v in ("3.13", "9"))
    assert hidden.get_json()["detail"] == missing.get_json()["detail"]
    assert api("bob")("GET", PLACE).status_code == 200
