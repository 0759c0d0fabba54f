"""Help: readable without a login, true of this site, with the site's own links and contact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from portal.config.images import ImageSettings
from portal.config.web import WebSettings
from portal.web.app import create_app
from tests.support.fakes import make_world
from tests.unit.web.conftest import Browser, make_settings, with_gpus

LINKS = [{"title": "Cluster handbook", "url": "https://docs.example.org/cluster?a=1&b=2"}]


def site(directory: Path, gpus: bool = False, **web: object) -> Browser:
    """A visitor of a site with these settings."""
    settings = make_settings(directory, **web)
    world = make_world(with_gpus(settings) if gpus else settings)
    return Browser(create_app(world.services))


def test_help_and_its_glossary_need_no_login(tmp_path: Path) -> None:
    visitor = site(tmp_path)
    page = visitor.get("/help")
    assert page.status_code == 200
    for word in ("Your first session", "Keep your files", "Resource group", "id_container"):
        assert word in page.text
    assert "account-menu" not in page.text
    assert 'href="/help"' in visitor.get("/login").text
    assert 'id="account-menu"' in visitor.log_in("alice").get("/help").text


def test_every_link_within_the_page_has_a_target(tmp_path: Path) -> None:
    text = site(tmp_path, gpus=True).get("/help").text
    targets = set(re.findall(r'href="#([\w-]+)"', text)) - {"main"}
    assert targets <= set(re.findall(r' id="([\w-]+)"', text))
    assert {"files", "gpu", "fgpu", "preset", "words"} <= targets


def test_gpus_are_explained_only_where_there_are_any(tmp_path: Path) -> None:
    assert "fGPU" not in site(tmp_path).get("/help").text
    assert "1 fGPU is 0.5 of a GPU" in site(tmp_path, gpus=True).get("/help").text


def test_examples_of_batch_jobs_name_an_image_that_the_reader_can_use(tmp_path: Path) -> None:
    visitor = site(tmp_path)
    assert "#SLIPWAY --image=NAME/VERSION\n" in visitor.get("/help").text
    page = visitor.log_in("alice").get("/help").text
    assert "#SLIPWAY --image=python/3.13\n" in page
    for word in ("slipway sbatch job.py", "--array=0-19", "srun --mpi=pmix", "Show the command"):
        assert word in page
    assert "--fgpu" not in page


def test_the_example_of_a_share_is_one_that_can_be_had(tmp_path: Path) -> None:
    page = site(tmp_path, gpus=True).get("/help").text
    assert "--image=NAME/VERSION --fgpu=0.5 job.py" in page


def test_the_sites_name_links_and_contact_are_on_every_page(tmp_path: Path) -> None:
    visitor = site(tmp_path, site_name="Harbour & Co", contact="help@example.org", help_links=LINKS)
    pages = [visitor.get("/login"), visitor.get("/help")]
    visitor.log_in("alice")
    pages += [visitor.get(path) for path in ("/sessions", "/account", "/sessions/none")]
    for page in pages:
        assert "Harbour &amp; Co" in page.text
        assert 'href="mailto:help@example.org"' in page.text
        assert 'href="https://docs.example.org/cluster?a=1&amp;b=2">Cluster handbook' in page.text


@pytest.mark.parametrize(
    ("contact", "url"),
    [
        ("help@example.org", "mailto:help@example.org"),
        ("https://help.example.org/", "https://help.example.org/"),
        ("Room 12, extension 345", ""),
        ("javascript:alert(1)", ""),
        ("<b>@x", ""),
        ("", ""),
    ],
)
def test_a_contact_is_linked_if_it_is_an_address(contact: str, url: str) -> None:
    assert WebSettings(contact=contact).contact_url == url


@pytest.mark.parametrize(
    "link",
    [
        {"title": "x", "url": "javascript:alert(1)"},
        {"title": "x", "url": "docs.example.org"},
        {"title": "x", "url": "https://docs.example.org/a b"},
        {"title": "", "url": "https://docs.example.org"},
        {"title": "x"},
        {"title": "x", "url": "https://docs.example.org", "more": 1},
    ],
)
def test_other_links_are_refused(link: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="help_links"):
        WebSettings.model_validate({"help_links": [link]})


def test_own_images_are_explained_only_where_they_are_permitted(tmp_path: Path) -> None:
    def text(**images: object) -> str:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        directory.mkdir()
        own = {"images": ImageSettings.model_validate(images)}
        world = make_world(make_settings(directory).model_copy(update=own))
        return Browser(create_app(world.services)).get("/help").text

    assert 'id="own-image"' not in text()
    files = text(own="files", folders=("/srv/images",), max_gb=7)
    assert "~/storage/images/tool.sif" in files
    assert "<code>/srv/images</code>" in files
    assert "An image may have 7 GB." in files
    assert "/account/registries" not in files
    registries = text(own="registries", registries=("r.example.org", "s:5000"))
    assert "docker://r.example.org/team/tool:1.2" in registries
    assert "Permitted here: r.example.org, s:5000." in registries
    assert "/account/registries" in registries
    every = text(own="registries", registries=("*",))
    assert "docker://registry.example.org/team/tool:1.2" in every
    assert "Permitted here" not in every
