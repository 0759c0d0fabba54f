"""What is asked for with our options, and what is wrong with it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from pathlib import Path

import pytest

from portal.node.batch import request
from portal.node.batch.options import OptionError
from portal.node.batch.settings import Settings, SettingsError, load
from tests.unit.node.batch.conftest import KINDS, site
from tests.unit.node.batch.image.conftest import make_sif

SIF = b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\x0001\0"


def image(value: str, settings: Settings, user: str = "alice") -> str:
    """The path of an image."""
    return request.find_image(value, settings, user)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("python/3.13", "/i/python313.sif"),
        ("python/3.11", "/i/python311.sif"),
        ("python", "/i/python313.sif"),
        ("debian", "/i/d12.sif"),
        ("docker://registry.example.org/a:1", "docker://registry.example.org/a:1"),
        ("docker://registry.example.org/a", "docker://registry.example.org/a:latest"),
    ],
)
def test_images_are_found_by_name(value: str, path: str, settings: Settings) -> None:
    assert image(value, settings) == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "it needs a value"),
        ("r/4", "there is no image 'r/4'; choose one of: python/3.13, python/3.11, debian/12"),
        ("python/2", "python has no version '2'; choose one of: python/3.13, python/3.11"),
        ("cuda", "there is no image 'cuda'; choose one of: python/3.13, python/3.11, debian/12"),
        ("oras://example.org/a", "images from oras:// are not permitted here"),
        (
            "docker://a b",
            "write it as docker://HOST/NAME:TAG, for example "
            "docker://registry.example.org/team/tool:1.2",
        ),
        (
            "docker://team/tool:1",
            "name the registry's host as well: docker://registry.example.org/team/tool",
        ),
        (
            "docker://evil.example.org/a",
            "images from evil.example.org are not permitted here; these registries are: "
            "registry.example.org, plain.example.org:5000",
        ),
        ("/nowhere/a.sif", "/nowhere/a.sif: No such file or directory"),
        ("/etc", "/etc: Is a directory"),
        ("/etc/passwd", "/etc/passwd is not an Apptainer image (SIF)"),
        ("/etc/a\nb.sif", "the file's name has control characters"),
    ],
)
def test_unknown_images_are_refused(value: str, text: str, settings: Settings) -> None:
    with pytest.raises(OptionError) as error:
        image(value, settings)
    assert str(error.value) == f"--image: {text}"


def test_who_sees_an_image(settings: Settings) -> None:
    assert image("r", settings, "bob") == "/i/r4.sif"
    with pytest.raises(OptionError, match="there is no image 'debian'"):
        image("debian", settings, "eve")


def test_own_image_files(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "my own.sif"
    file.write_bytes(SIF)
    monkeypatch.chdir(tmp_path)
    assert image("my own.sif", settings) == str(file)
    assert image("./my own.sif", settings) == str(file)
    strict = Settings(site(own_images=["docker"]))
    with pytest.raises(OptionError, match="your own image files are not permitted here"):
        image(str(file), strict)


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """A file of the image r/4, which bob alone sees."""
    file = tmp_path / "images" / "r" / "4" / "image-0123456789abcdef.sif"
    file.parent.mkdir(parents=True)
    file.write_bytes(make_sif(id=b"R" * 16))
    file.with_name("image.sif").symlink_to(file.name)
    return file


def site_with(file: Path, *, retired: bool = False) -> Settings:
    """Settings in which this file is hidden from all but bob, or retired."""
    files = [[str(file), (b"R" * 16).hex()], [str(file.with_name("image.sif")), ""]]
    image = {"environment": "r", "version": "4", "path": str(file), "files": files}
    image |= {"visible_to": ["bob"]}
    if retired:
        return Settings(site(retired=[image | {"visible_to": None}]))
    return Settings(site(images=[*site()["images"], image]))


def other_names(file: Path) -> list[str]:
    """The file by other names, and a copy."""
    mine = file.parents[3] / "mine"
    mine.mkdir()
    (mine / "link.sif").symlink_to(file)
    (mine / "folder").symlink_to(file.parents[2])
    (mine / "hard.sif").hardlink_to(file)
    shutil.copyfile(file, mine / "copy.sif")
    return [
        str(file),
        str(file.with_name("image.sif")),
        f"{file.parent}/../4/{file.name}",
        *(f"{mine}/{name}" for name in ("link.sif", "folder/r/4/image.sif", "hard.sif")),
        f"{mine}/copy.sif",
    ]


def test_a_hidden_image_is_refused_by_whatever_name(hidden: Path) -> None:
    settings = site_with(hidden)
    for name in other_names(hidden):
        with pytest.raises(OptionError) as error:
            image(name, settings)
        path = os.path.abspath(name)
        assert str(error.value) == (
            f"--image: {path} is one of the site's images: it is not offered to you"
        )
        assert image(name, settings, "bob") == path


def test_a_retired_image_is_refused_by_whatever_name(hidden: Path) -> None:
    for name in other_names(hidden):
        with pytest.raises(OptionError, match=r": r 4 was retired by an administrator$"):
            image(name, site_with(hidden, retired=True), "bob")


def test_without_an_id_links_are_recognised_and_copies_are_not(hidden: Path) -> None:
    settings = site_with(hidden)
    hidden.write_bytes(make_sif(id=b"S" * 16))
    *links, copy = other_names(hidden)
    for name in links:
        with pytest.raises(OptionError, match="it is not offered to you"):
            image(name, settings)
    assert image(copy, settings) == copy


def test_a_fifo_as_image_does_not_block(settings: Settings, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.sif")
    with pytest.raises(OptionError, match="is not a file"):
        image(str(tmp_path / "a.sif"), settings)


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "storage" / "data").mkdir(parents=True)
    home = str(tmp_path)
    assert request.read_mount("data", "storage", "alice", home) == [f"{home}/storage/data", "rw"]
    assert request.read_mount("data:ro", "storage", "alice", home) == [f"{home}/storage/data", "ro"]
    for name in ("~", "~x", "a:ro", "-rf", "a ", "e\u0301", "über a", "데이터", "x" * 255):
        (tmp_path / "storage" / name).mkdir()
        path = f"{home}/storage/{name}"
        assert request.read_mount(name, "storage", "alice", home) == [path, "rw"]
        for mode in ("ro", "rw"):
            assert request.read_mount(f"{name}:{mode}", "storage", "alice", home) == [path, mode]
    assert request.read_mount(f"{home}:ro", "storage", "alice", home) == [home, "ro"]
    assert request.read_mount("home", "storage", "alice", home) == [home, "rw"]
    (tmp_path / "proj" / "alice" / "x").mkdir(parents=True)
    found = request.read_mount("x", f"{home}/proj/{{user}}", "alice", home)
    assert found == [f"{home}/proj/alice/x", "rw"]


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    folder = tmp_path / "nobody" / "data"
    folder.mkdir(parents=True)
    storage = f"{tmp_path}/{{user}}"
    with pytest.raises(OptionError, match="no folder nobody/data is shared"):
        request.read_mount("nobody/data", storage, "alice", "/home/alice")  # of its maker
    os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    found = request.read_mount("nobody/data:ro", storage, "alice", "/home/alice")
    assert found == [str(folder), "ro", "nobody"]
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(OptionError, match="no folder nobody/link is shared"):
        request.read_mount("nobody/link", storage, "alice", "/home/alice")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a/b/c", "'a/b/c' is neither a storage folder's name nor a path"),
        ("n0-such/b", "no folder n0-such/b is shared with you"),
        ("nobody/b:ro", "no folder nobody/b is shared with you"),
        ("", "'' is neither a storage folder's name nor a path"),
        ("gone", "there is no folder {home}/storage/gone"),
        ("/nowhere:ro", "there is no folder /nowhere"),
        ("/a\nb", "the path has control characters"),
    ],
)
def test_wrong_folders(value: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError) as error:
        request.read_mount(value, "storage", "alice", str(tmp_path))
    assert str(error.value) == "--mount: " + text.format(home=tmp_path)


@pytest.mark.parametrize(
    ("value", "mb"), [("2g", 2048), ("512m", 512), ("1.5G", 1536), ("4096K", 4), ("1", 1024)]
)
def test_shared_memory(value: str, mb: int, settings: Settings) -> None:
    assert request.read_shm(value, settings) == mb


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("much", "'much' is not a size; write it as 512m or 2g"),
        ("-1g", "'-1g' is not a size; write it as 512m or 2g"),
        ("1k", "'1k' is less than 1m"),
        ("9" * 400 + "g", f"'{'9' * 400}g' is more than any node has"),
        ("5g", "at most 4096m are permitted here"),
    ],
)
def test_wrong_shared_memory(value: str, text: str, settings: Settings) -> None:
    with pytest.raises(OptionError) as error:
        request.read_shm(value, settings)
    assert str(error.value) == f"--shm: {text}"


@pytest.mark.parametrize(
    ("values", "gres"),
    [
        ({}, ""),
        ({"fgpu": "0.5"}, "shard:a100:1"),
        ({"fgpu": "0.6"}, "shard:a100:2"),
        ({"fgpu": "2"}, "shard:a100:4"),
        ({"fgpu": "4"}, "gpu:a100:2"),
        ({"fgpu": "1", "gpu-kind": "h100"}, "gpu:h100:1"),
    ],
)
def test_shares_of_gpus(values: dict[str, str], gres: str, settings: Settings) -> None:
    of_steps = re.sub("^shard:.*:", "shard:", gres)
    assert request.read_fgpu(values, settings) == (gres, of_steps)


@pytest.mark.parametrize(("amount", "gres"), [("0.5", "shard:1"), ("4", "gpu:a100:2")])
def test_a_share_of_the_only_kind_can_be_inherited_by_steps(amount: str, gres: str) -> None:
    one_kind = Settings(site(gpu_kinds=KINDS[:1]))
    assert request.read_fgpu({"fgpu": amount}, one_kind) == (gres, gres)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"gpu-kind": "a100"}, "--gpu-kind: it needs --fgpu"),
        ({"fgpu": "1", "gpu-kind": "x"}, "--gpu-kind: there is no 'x'; choose one of: a100, h100"),
        ({"fgpu": "half"}, "--fgpu: 'half' is not a number above 0"),
        ({"fgpu": "0"}, "--fgpu: '0' is not a number above 0"),
        ({"fgpu": "nan"}, "--fgpu: 'nan' is not a number above 0"),
        ({"fgpu": "inf"}, "--fgpu: 'inf' is not a number above 0"),
    ],
)
def test_wrong_shares(values: dict[str, str], text: str, settings: Settings) -> None:
    with pytest.raises(OptionError) as error:
        request.read_fgpu(values, settings)
    assert str(error.value) == text


def test_without_gpus() -> None:
    with pytest.raises(OptionError, match=r"^--fgpu: there are no GPUs here$"):
        request.read_fgpu({"fgpu": "1"}, Settings(site(gpu_kinds=[])))


def test_variables_from_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("# note\n\nA=1\nB= x = y \nü\n".replace("ü\n", ""))
    two.write_text("A=2\nC=")
    options = [("env-file", str(one)), ("image", "x"), ("env-file", str(two))]
    assert request.read_env_files(options) == {"A": "2", "B": " x = y", "C": ""}
    one.write_text("A=1\n", encoding="utf-8-sig")
    assert request.read_env_files(options[:1]) == {"A": "1"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"A\n", "line 1: write NAME=value"),
        (b"A=1\n1A=2\n", "line 2: write NAME=value"),
        (b"A=\0", "line 1: write NAME=value"),
        (b"\xff", ": it is not UTF-8"),
        (b"A=" + b"x" * request.MAX_ENV_FILE, " has more than 95 KiB"),
    ],
)
def test_wrong_files_of_variables(content: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(content)
    with pytest.raises(OptionError) as error:
        request.read_env_files([("env-file", str(tmp_path / "e"))])
    assert str(error.value).startswith(f"--env-file: {tmp_path}/e")
    assert str(error.value).endswith(text)


def test_the_variables_of_all_files_fit_into_one(tmp_path: Path) -> None:
    options = []
    for name in ("A", "B"):
        (tmp_path / name).write_text(f"{name}={'x' * (request.MAX_ENV_FILE // 2 - 2)}\n")
        options.append(("env-file", str(tmp_path / name)))
    assert len(request.read_env_files(options[:1])["A"]) == request.MAX_ENV_FILE // 2 - 2
    with pytest.raises(OptionError) as error:
        request.read_env_files(options)
    assert str(error.value) == f"--env-file: {tmp_path}/B: more than 95 KiB of variables in all"


def test_only_a_newline_ends_a_variable(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes("A=1\u2028B=2\r\nC=\x0c3\n".encode())
    found = request.read_env_files([("env-file", str(tmp_path / "e"))])
    assert found == {"A": "1\u2028B=2", "C": "\x0c3"}


def test_a_request_travels_as_text(settings: Settings, tmp_path: Path) -> None:
    options = [("image", "python"), ("mount", f"{tmp_path}:ro"), ("shm", "1g"), ("fgpu", "0.5")]
    built, gres = request.build(options, settings, "alice", str(tmp_path))
    assert gres == ("shard:a100:1", "shard:1")
    assert "\n" not in built.text()
    again = request.parse(built.text())
    assert again.text() == built.text()
    assert (again.image, again.name, again.shm_mb) == ("/i/python313.sif", "python", 1024)
    assert again.binds == [["/scratch", "rw"], [str(tmp_path), "ro"]]


@pytest.mark.parametrize("text", ["", "1", "{}", '{"version": 2}', '{"version": 1, "image": 3}'])
def test_another_versions_request_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        request.parse(text)


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    for file in ("x", "gone"):
        with pytest.raises(SettingsError, match="Tell the administrators"):
            load(str(tmp_path / file))
