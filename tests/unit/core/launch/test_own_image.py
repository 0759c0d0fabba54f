"""Own images in launches: what is a valid name of one, and what the site permits."""

from __future__ import annotations

import pytest

from portal.core.launch.own_image import (
    OwnImageRules,
    image_job,
    image_problems,
    image_title,
)
from portal.core.launch.request import parse_launch
from portal.errors import InvalidRequest

RULES = OwnImageRules(
    own="registries",
    folders=("/shared/images",),
    registries=("registry.example.org", "plain.example.org:5000"),
    insecure=("plain.example.org:5000",),
)
SMALL = {"resources": {"memory": "1g"}}
DIGEST = "sha256:" + "a" * 64


def errors(**body: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as error:
        parse_launch(SMALL | body)
    return [(e.field, e.message) for e in error.value.errors]


@pytest.mark.parametrize(
    ("image", "stored"),
    [
        ("images/a.sif", "images/a.sif"),
        ("images/deep/er/a-1.2_x.sif", "images/deep/er/a-1.2_x.sif"),
        ("/shared/images/a.sif", "/shared/images/a.sif"),
        ("docker://registry.example.org/a", "docker://registry.example.org/a:latest"),
        ("docker://registry.example.org/t/a:1.2", "docker://registry.example.org/t/a:1.2"),
        (f"docker://r.example.org/a@{DIGEST}", f"docker://r.example.org/a@{DIGEST}"),
    ],
)
def test_names_of_images(image: str, stored: str) -> None:
    request = parse_launch(SMALL | {"image": image})
    assert (request.image, request.environment, request.version) == (stored, "own", None)


_FORM = "name a file that ends in .sif, as FOLDER/NAME.sif, or docker://HOST/NAME:TAG"
_FOLDER = "name one of your storage folders first: FOLDER/NAME.sif"
_PLAIN = "write the path without //, . and .."
_CHARS = "in the file's path use letters, digits and . _ / @ % + = : , - only"


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("", _FORM),
        ("images/a.img", _FORM),
        ("a.sif", _FOLDER),
        ("home/a.sif", _FOLDER),
        (".slipway/a.sif", _FOLDER),
        ("-x/a.sif", _FOLDER),
        ("images/../a.sif", _PLAIN),
        ("images//a.sif", _PLAIN),
        ("/../etc/a.sif", _PLAIN),
        ("images/$(reboot).sif", _CHARS),
        ("images/a b.sif", _CHARS),
        ("images/a\n.sif", _CHARS),
        ("images/" + "a" * 300 + ".sif", "use up to 255 characters"),
        (
            "oras://registry.example.org/a",
            "write the address of an image as docker://HOST/NAME:TAG",
        ),
        (
            "docker://team/tool",
            "name the registry's host as well: docker://registry.example.org/team/tool",
        ),
        (
            "docker://registry.example.org/a;reboot",
            "write it as docker://HOST/NAME:TAG, for example "
            "docker://registry.example.org/team/tool:1.2",
        ),
    ],
)
def test_what_names_no_image(image: str, message: str) -> None:
    assert errors(image=image) == [("image", message)]


def test_an_environment_or_an_image() -> None:
    both = [("image", "choose an environment or an image of your own, not both")]
    assert errors(image="images/a.sif", environment="python") == both
    assert errors(image="images/a.sif", version="1") == both
    assert errors() == [("environment", "this is needed")]
    assert errors(environment="own") == [("environment", "this is needed")]


@pytest.mark.parametrize(
    ("image", "own", "message"),
    [
        ("images/a.sif", "off", "this site does not permit own images; choose an environment"),
        (
            "docker://registry.example.org/a:1",
            "off",
            "this site does not permit own images; choose",
        ),
        (
            "docker://registry.example.org/a:1",
            "files",
            "this site permits own images as files only",
        ),
        (
            "docker://evil.example.org/a:1",
            "registries",
            "images from evil.example.org are not permitted here; these registries are: "
            "registry.example.org, plain.example.org:5000",
        ),
        (
            "/etc/a.sif",
            "files",
            "choose a file in one of your storage folders, or in /shared/images",
        ),
        (
            "/shared/images2/a.sif",
            "files",
            "choose a file in one of your storage folders, or in /shared/images",
        ),
        ("images/a.sif", "files", ""),
        ("/shared/images/a.sif", "files", ""),
        ("docker://plain.example.org:5000/a:1", "registries", ""),
    ],
)
def test_what_a_site_permits(image: str, own: str, message: str) -> None:
    rules = OwnImageRules(
        **{**{name: getattr(RULES, name) for name in RULES.__dataclass_fields__}, "own": own}
    )
    found = image_problems(image, rules)
    if not message:
        assert found == []
    else:
        assert [e.field for e in found] == ["image"]
        assert found[0].message.startswith(message)


def test_every_registry_can_be_permitted() -> None:
    rules = OwnImageRules(own="registries", registries=("*",))
    assert image_problems("docker://any.example.org/a:1", rules) == []


def test_what_the_job_is_told() -> None:
    job = image_job("alice", "images/x/a.sif", RULES, "storage")
    assert (job.folder, job.file, job.reference) == ("storage/images", "x/a.sif", "")
    job = image_job("alice", "images/a.sif", RULES, "/proj/{user}/")
    assert (job.folder, job.file) == ("/proj/alice/images", "a.sif")
    job = image_job("alice", "/shared/images/x/a.sif", RULES, "storage")
    assert (job.folder, job.file) == ("/shared/images", "x/a.sif")
    job = image_job("alice", "docker://plain.example.org:5000/a:1", RULES, "storage")
    assert (job.folder, job.reference) == ("", "docker://plain.example.org:5000/a:1")
    assert job.insecure == "plain.example.org:5000"
    assert image_job("alice", "docker://registry.example.org/a:1", RULES, "s").insecure == ""


@pytest.mark.parametrize(
    ("image", "title"),
    [
        ("images/x/a.sif", "a.sif"),
        ("docker://registry.example.org/team/tool:1.2", "tool:1.2"),
        (f"docker://registry.example.org/team/tool@{DIGEST}", "tool@aaaaaaaaaaaa"),
    ],
)
def test_short_names(image: str, title: str) -> None:
    assert image_title(image) == title
