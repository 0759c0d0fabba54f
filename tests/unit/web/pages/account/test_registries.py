"""The page with logins for registries."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from portal.config.images import ImageSettings
from portal.core.launch.registry_login import MOST_LOGINS
from portal.web.app import create_app
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import PORTAL, Browser, make_settings

HOST = "registry.example.org"
PLACE = "/account/registries"
SECRET = "s3cret <x> & more"
LOGIN = {"registry": HOST, "user": "team", "password": SECRET}


def with_images(tmp_path: Path, **images: object) -> World:
    settings = make_settings(tmp_path)
    found = ImageSettings.model_validate(images)
    return make_world(settings.model_copy(update={"images": found}))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return with_images(tmp_path, own="registries", registries=("*", HOST))


def test_a_login_is_saved_replaced_and_deleted(alice: Browser, world: World) -> None:
    assert "You have saved none" in alice.get(PLACE).text
    assert alice.post(PLACE, LOGIN).headers["Location"] == PLACE
    page = alice.get(PLACE)
    assert f"The login for {HOST} is saved." in page.text
    assert page.headers["Cache-Control"] == "no-store"
    assert f"<strong>{HOST}</strong>" in page.text
    assert "never" in page.text
    alice.post(PLACE, LOGIN | {"user": "other"})
    assert "replaces the one that you had saved" in alice.get(PLACE).text
    alice.post(f"{PLACE}/forget", {"registry": HOST})
    assert "is deleted" in alice.get(PLACE).text
    assert "You have saved none" in alice.get(PLACE).text
    alice.post(f"{PLACE}/forget", {"registry": HOST})
    assert "There was no such login any more." in alice.get(PLACE).text


def test_the_password_is_on_no_page(alice: Browser) -> None:
    alice.post(PLACE, LOGIN)
    refused = alice.post(PLACE, LOGIN | {"user": "two words"})
    assert refused.status_code == 422
    assert 'value="two words"' in refused.text
    for page in (refused, alice.get(PLACE), alice.get("/account")):
        assert "s3cret" not in page.text


def test_others_neither_see_nor_delete_it(alice: Browser, bob: Browser) -> None:
    alice.post(PLACE, LOGIN)
    assert "You have saved none" in bob.get(PLACE).text
    bob.post(f"{PLACE}/forget", {"registry": HOST})
    assert "There was no such login any more." in bob.get(PLACE).text
    assert f'data-registry="{HOST}"' in alice.get(PLACE).text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"registry": "https://registry.example.org/"}, "Write the registry&#39;s host only"),
        ({"registry": "REGISTRY"}, "Write the registry&#39;s host only"),
        ({"user": "a:b"}, "Use printable characters without blanks and colons"),
        ({"user": ""}, "This must not be empty"),
        ({"password": ""}, "This must not be empty"),
        ({"password": "two\nlines"}, "Use printable ASCII characters, in one line"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    wrong: dict[str, str], words: str, alice: Browser
) -> None:
    answer = alice.post(PLACE, LOGIN | wrong)
    assert answer.status_code == 422
    assert f'id="error-{next(iter(wrong))}"' in answer.text
    assert words in answer.text


def test_nobody_saves_them_without_end(alice: Browser) -> None:
    for number in range(MOST_LOGINS):
        alice.post(PLACE, LOGIN | {"registry": f"r{number}.example.org"})
    assert f"You have {MOST_LOGINS} logins already" in alice.post(PLACE, LOGIN).text
    assert alice.post(PLACE, LOGIN | {"registry": "r1.example.org"}).status_code == 303


def test_a_form_from_elsewhere_saves_nothing(alice: Browser) -> None:
    answer = alice.client.post(PLACE, data=LOGIN, base_url=PORTAL)
    assert answer.status_code == 400
    assert "You have saved none" in alice.get(PLACE).text


def test_the_menu_leads_there_only_where_registries_are_permitted(
    alice: Browser, tmp_path: Path
) -> None:
    assert f'href="{PLACE}"' in alice.get("/sessions").text
    (tmp_path / "files").mkdir()
    app: Flask = create_app(with_images(tmp_path / "files", own="files").services)
    other = Browser(app).log_in("alice")
    assert f'href="{PLACE}"' not in other.get("/sessions").text
    assert "This site does not permit images from registries" in other.get(PLACE).text


def test_permitted_hosts_are_offered_to_choose_from(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    images = {"own": "registries", "registries": (HOST, "r:5000"), "insecure": ("r:5000",)}
    app = create_app(with_images(tmp_path / "some", **images).services)
    text = Browser(app).log_in("alice").get(f"{PLACE}?registry=r:5000").text
    assert "<option selected>r:5000</option>" in text
    assert "r:5000: reached without encryption" in text
