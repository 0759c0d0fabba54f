"""Descriptions of apps and images; an invalid one is reported and omitted."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.catalog import CatalogError, DetectedApps, FolderCatalog, read_app, read_image
from portal.core.apps.catalog import Catalog, split_request
from tests.support.paths import ROOT


def app(folder: Path, name: str, toml: str, script: str | None = "exec true\n") -> Path:
    """Create an app's folder."""
    (folder / name).mkdir(parents=True)
    (folder / name / "app.toml").write_text(toml)
    if script is not None:
        (folder / name / "start.sh").write_text(script)
    return folder / name


LONG = "title = 'A'\ncommand = '''\ntimeout = 0\n'''\n"


@pytest.mark.parametrize(
    ("toml", "script", "words"),
    [
        ("title = ", "x", "app.toml, line 1: Invalid value"),
        ("title = 'A'\n[x", "x", "app.toml, line 2: Expected"),
        ("icon = 'box'", "x", "app.toml: title: this is needed"),
        ("title = 'A'\n# no\npath = 'lab'", "x", "line 3: path: a path begins"),
        ("title = 'A'\npath = '//example.org'", "x", "line 2: path: a path begins"),
        ("title = 'A'\nready = '/a b'", "x", "line 2: ready: a path begins"),
        ("title = 'A'\ntimeout = 0", "x", "line 2: timeout: this must be at least 1"),
        (LONG + "timeout = 0", None, "line 5: timeout"),
        ("title = 'A'\ncolour = 'red'", "x", "line 2: colour: there is no such field"),
        ("title = 'A'\nscript = 'x'", "x", "line 2: script: there is no such field"),
        ("title = 'A'\nname = 'x'", "x", "line 2: name: there is no such field"),
        ("title = 'A'", None, "app.toml: command: this is needed"),
        ("title = 'A'\ncommand = 'x'", "x", "line 2: command: there is a start.sh"),
        ("title = 'A'\ncommand = 7", None, "line 2: command: this must be text"),
        ("title = 'A'\nshares = 'b'", "x", "line 2: shares: it starts by itself"),
        ("title = 'A'\nshares = 'thing'", None, "line 2: shares: it cannot share its own"),
        ("title = 'A'\nshares = 'b'\nlisten = 'tcp'", None, "line 3: listen: this belongs"),
        ("title = 'A'\nlisten = 'udp'", "x", "line 2: listen"),
        ("title = 'A'\nbackground = ['/a', 'b']", "x", "line 2: background: a path begins"),
        ("title = 'A'\nbackground = ['put /a']", "x", 'line 2: background: write "/path"'),
        ("title = 'A'\ndetect = ['a/b']", "x", "line 2: detect: name a program"),
        ("title = 'A'\nbusy = '/x'\nbusy_when = '(('", "x", "line 3: busy_when: this is not a reg"),
        ("title = 'A'\nbusy_when = 'x'", "x", "line 2: busy_when: set both busy and busy_when"),
        (
            "title = 'A'\nkind = 'ssh'\npublic = true",
            "x",
            "line 3: public: this does not apply",
        ),
    ],
)
def test_an_invalid_app_is_refused_with_line_and_reason(
    tmp_path: Path, toml: str, script: str | None, words: str
) -> None:
    with pytest.raises(CatalogError, match=re.escape(words)):
        read_app(app(tmp_path, "thing", toml, script))


@pytest.mark.parametrize("name", ["control", "Thing", "9", "a" * 32])
def test_reserved_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CatalogError, match=r"app\.toml: name: "):
        read_app(app(tmp_path, name, "title = 'A'"))


@pytest.mark.parametrize("name", ["app.toml", "start.sh"])
def test_binary_files_are_refused(tmp_path: Path, name: str) -> None:
    folder = app(tmp_path, "thing", "title = 'A'")
    (folder / name).write_bytes(b"title = 'A'\n#\xff\n")
    with pytest.raises(CatalogError, match=f"{name}, line 2: this is not UTF-8"):
        read_app(folder)


def test_one_file_is_enough_for_an_app(tmp_path: Path) -> None:
    text = 'title = \'A\'\nlisten = \'tcp\'\ncommand = """\nexec serve $PORT\n"""\n'
    read = read_app(app(tmp_path, "thing", text, None))
    assert (read.script, read.listen, read.server) == ("exec serve $PORT\n", "tcp", "thing")


def test_background_requests_of_a_window(tmp_path: Path) -> None:
    text = "title = 'A'\nbackground = ['/api/list', 'PUT /state']"
    read = read_app(app(tmp_path, "thing", text))
    asked = [split_request(one) for one in read.background]
    assert asked == [("GET", "/api/list"), ("PUT", "/state")]


def catalog_of(tmp_path: Path, found: DetectedApps | None = None) -> FolderCatalog:
    """The catalogue of a test's folders."""
    return FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"), lambda: found or {})


def test_incompatible_apps_are_omitted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    apps = tmp_path / "apps"
    app(apps, "a", "title = 'A'")
    app(apps, "b", "title = 'B'\nshares = 'a'", None)
    app(apps, "c", "title = 'C'\n\nshares = 'b'", None)
    app(apps, "d", "shares = 'nowhere'\ntitle = 'D'", None)
    app(apps, "e", "title = 'A'")
    app(apps, "f", "title = 'F'\nshares = 'e'", None)
    (apps / "g").mkdir()
    app(apps, "h", "title = 'H'")
    # Whoever reaches it has the whole server of an app that is never public.
    app(apps, "i", "title = 'I'\npublic = true\nshares = 'a'", None)
    app(apps, "j", "title = 'J'\npublic = true")
    app(apps, "k", "title = 'K'\npublic = true\nshares = 'j'", None)
    catalog = catalog_of(tmp_path)()
    assert list(catalog.apps) == ["a", "b", "h", "j", "k"]
    texts = (
        "c/app.toml, line 3: shares: b has no web server of its own",
        "d/app.toml, line 1: shares: there is no app nowhere",
        "e/app.toml, line 1: title: the app a has the same title",
        "f/app.toml, line 2: shares: there is no app e",
        "g/app.toml: No such file",
        "i/app.toml, line 2: public: a, whose server it shares, is never public",
    )
    for text in texts:
        assert text in "\n".join(catalog.problems)
        assert text in caplog.text
    assert len(catalog.problems) == len(texts)


def test_an_invalid_app_does_not_hide_the_others(tmp_path: Path) -> None:
    app(tmp_path / "apps", "good", "title = 'Good'")
    app(tmp_path / "apps", "bad", "title = ")
    for version in ("3.9", "3.13"):
        folder = tmp_path / "images" / "python" / version
        folder.mkdir(parents=True)
        (folder / "image.sif").touch()
        (folder / "image.toml").write_text("title = 'Python'\napps = ['good']")
    catalog = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))()
    assert set(catalog.apps) == {"good"}
    assert [image.version for image in catalog.images] == ["3.13", "3.9"]  # newest first
    newest = catalog.image("python", None)
    assert newest is not None
    assert newest.version == "3.13"


def test_sessions_get_the_file_behind_the_link_and_retired_versions_stay_known(
    tmp_path: Path,
) -> None:
    for version in ("1", "2"):
        image(tmp_path, "tool", version)
    folder = tmp_path / "images" / "tool" / "2"
    (folder / "image.sif").rename(folder / "image-0123456789abcdef.sif")
    (folder / "image.sif").symlink_to("image-0123456789abcdef.sif")
    (folder / "retired").touch()
    catalog = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))()
    assert [one.version for one in catalog.images] == ["1"]
    (retired,) = catalog.retired
    assert retired.path == str(folder / "image-0123456789abcdef.sif")
    assert catalog.image("tool", "2") == retired
    newest = catalog.image("tool", None)
    assert newest is not None
    assert newest.version == "1"


def test_the_sites_own_apps_extend_or_replace_the_shipped_ones(tmp_path: Path) -> None:
    ships, own = tmp_path / "ships", tmp_path / "own"
    for name in ("a", "b", "c"):
        app(ships, name, f"title = 'Ships {name}'")
    app(own, "b", "title = 'Own b'")
    app(own, "c", "title = ")
    app(own, "d", "title = 'Own d'\nshares = 'a'", None)
    folders = (str(ships), str(own), str(tmp_path / "missing"))
    catalog = FolderCatalog(folders, str(tmp_path / "images"))()
    titles = {name: spec.title for name, spec in catalog.apps.items()}
    assert titles == {"a": "Ships a", "b": "Own b", "d": "Own d"}
    (problem,) = catalog.problems  # an invalid one does not fall back to the one that it replaces
    assert problem.startswith(f"{own}/c/app.toml")


def image(folder: Path, environment: str, version: str, toml: str = "") -> None:
    """Create an image's folder."""
    place = folder / "images" / environment / version
    place.mkdir(parents=True)
    (place / "image.sif").touch()
    (place / "image.toml").write_text(f"title = '{environment}'\n{toml}")


def test_the_image_marked_as_default_is_proposed(tmp_path: Path) -> None:
    image(tmp_path, "debian", "13")
    image(tmp_path, "python", "3.14")
    image(tmp_path, "python", "3.13", "default = true")
    catalog = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))()
    assert catalog.proposed is not None
    assert (catalog.proposed.environment, catalog.proposed.version) == ("python", "3.13")
    found = [(image.environment, image.version) for image in catalog.images]
    assert found == [("debian", "13"), ("python", "3.14"), ("python", "3.13")]


def test_without_a_mark_the_first_is_proposed(tmp_path: Path) -> None:
    nothing = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))()
    assert nothing.proposed is None
    image(tmp_path, "python", "3.9")
    image(tmp_path, "python", "3.13")
    catalog = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))()
    assert catalog.proposed is not None
    assert catalog.proposed.version == "3.13"


def test_exactly_one_of_our_own_images_is_the_default() -> None:
    images = [read_image(file.parent) for file in (ROOT / "images").glob("*/*/image.toml")]
    assert [(i.environment, i.version) for i in images if i.default] == [("python", "3.13")]


@pytest.mark.parametrize("folder", sorted((ROOT / "apps").glob("*/")), ids=lambda f: f.name)
def test_our_own_apps(folder: Path) -> None:
    assert read_app(folder).title


@pytest.mark.parametrize("file", sorted((ROOT / "images").glob("*/*/image.toml")), ids=str)
def test_our_own_images(file: Path) -> None:
    image = read_image(file.parent)
    known = {folder.name for folder in (ROOT / "apps").iterdir()}
    assert set(image.apps) <= known


def test_apps_offered_by_an_image(tmp_path: Path) -> None:
    apps = tmp_path / "apps"
    app(apps, "board", "title = 'Board'\ndetect = ['board']")
    app(apps, "lab", "title = 'Lab'\ndetect = ['lab']")
    app(apps, "book", "title = 'Book'\nshares = 'lab'\ndetect = ['book', '/opt/book']", None)
    app(apps, "shell", "title = 'Shell'")
    image(tmp_path, "plain", "1")
    image(tmp_path, "python", "1", "default_app = 'book'")
    image(tmp_path, "chosen", "1", "apps = ['shell', 'lab', 'gone']")
    found = {("plain", "1"): ("board", "shell"), ("chosen", "1"): ("board", "shell", "lab")}

    def offered(environment: str, *session: str, known: DetectedApps | None = None) -> list[str]:
        catalog = catalog_of(tmp_path, known)()
        return [spec.name for spec in catalog.apps_of(environment, "1", session)]

    # Not inspected yet: the apps that run everywhere, and those named by the description.
    assert offered("plain") == ["shell"]
    assert offered("python") == ["book", "lab", "shell"]
    assert offered("chosen") == ["shell", "lab"]
    # The findings of sessions count, within the administrators' choice, in its order.
    assert offered("plain", known=found) == ["board", "shell"]
    assert offered("chosen", known=found) == ["shell", "lab"]
    # The findings of this session count most; an app without its server is omitted.
    assert offered("plain", "lab", "book", known=found) == ["book", "lab"]
    assert offered("plain", "book", known=found) == []
    assert offered("chosen", "lab", "board", known=found) == ["lab"]
    # The image is gone, the session goes on.
    assert offered("retired", "shell") == ["shell"]
    assert offered("retired") == []
    problems = catalog_of(tmp_path)().problems
    assert [text.partition("image.toml")[2] for text in problems] == [
        ", line 2: apps: there is no app gone"
    ]


def test_a_session_looks_for_every_possible_app(tmp_path: Path) -> None:
    apps = tmp_path / "apps"
    app(apps, "lab", "title = 'Lab'\ndetect = ['lab']")
    app(apps, "book", "title = 'Book'\nshares = 'lab'", None)
    app(apps, "shell", "title = 'Shell'")
    image(tmp_path, "plain", "1")
    image(tmp_path, "chosen", "1", "apps = ['book']")
    catalog = catalog_of(tmp_path)()
    assert [spec.name for spec in catalog.startable("plain", "1")] == ["lab", "book", "shell"]
    assert [spec.name for spec in catalog.startable("chosen", "1")] == ["book", "lab"]


def test_no_image_of_the_site_is_named_like_peoples_own(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "own" / "1"
    folder.mkdir(parents=True)
    (folder / "image.sif").touch()
    (folder / "image.toml").write_text('title = "Own"')
    catalog = catalog_of(tmp_path)()
    assert catalog.images == ()
    assert catalog.problems == (
        f"{folder / 'image.toml'}: own stands for people's own images; rename the folder",
    )


def inventory(folder: Path, *names: str) -> None:
    """Write the inventory beside an image's file, with these Python packages."""
    contents = {
        "environment": "lab", "version": "1", "title": "Lab", "sources": "s", "origin": "trixie",
        "packages": [("pip", name, "1.0") for name in names], "digest": "d" * 64, "size": 1,
        "built": "2026-11-02T03:04:05Z",
    }  # fmt: skip
    (folder / "image.json").write_text(json.dumps(contents))


def test_an_image_is_found_by_its_main_packages(tmp_path: Path) -> None:
    image(tmp_path, "lab", "1")
    image(tmp_path, "plain", "1")
    folder = tmp_path / "images/lab/1"
    inventory(folder, "numpy", "some-library")

    def packages(catalog: FolderCatalog) -> dict[str, tuple[str, ...]]:
        return {image.environment: image.packages for image in catalog().images}

    assert packages(catalog_of(tmp_path)) == {"lab": ("numpy",), "plain": ()}
    (folder / "image.json").write_text("no JSON")
    assert packages(catalog_of(tmp_path)) == {"lab": (), "plain": ()}


def test_an_inventory_is_read_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.adapters.catalog.FRESH_SECONDS", -1.0)
    image(tmp_path, "lab", "1")
    folder = tmp_path / "images/lab/1"
    inventory(folder, "numpy")
    catalog = catalog_of(tmp_path)
    assert catalog().images[0].packages == ("numpy",)
    read: list[Path] = []
    monkeypatch.setattr("portal.adapters.catalog.read_inventory", read.append)
    assert catalog().images[0].packages == ("numpy",)
    assert read == []
    os.utime(folder / "image.json", (1, 1))
    assert catalog().images[0].packages == ()
    assert read == [folder / "image.sif"]


def test_nobody_waits_for_a_slow_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread reads the folders; meanwhile the others have the catalog before."""
    catalog = FolderCatalog((str(tmp_path / "apps"),), str(tmp_path / "images"))
    app(tmp_path / "apps", "old", "title = 'Old'\n")
    assert set(catalog().apps) == {"old"}
    app(tmp_path / "apps", "new", "title = 'New'\n")
    monkeypatch.setattr("portal.adapters.catalog.FRESH_SECONDS", -1.0)
    reads, goes_on = threading.Event(), threading.Event()
    scan = catalog._scan

    def slow() -> Catalog:
        reads.set()
        assert goes_on.wait(20)
        return scan()

    monkeypatch.setattr(catalog, "_scan", slow)
    thread = threading.Thread(target=catalog)
    thread.start()
    assert reads.wait(20)
    others: list[Catalog] = []
    other = threading.Thread(target=lambda: others.append(catalog()), daemon=True)
    other.start()
    other.join(5)
    goes_on.set()
    thread.join()
    assert [set(found.apps) for found in others] == [{"old"}]
    assert set(catalog().apps) == {"old", "new"}


def test_an_error_of_one_images_files_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image(tmp_path, "lab", "1")
    image(tmp_path, "lab", "2")
    stat = os.stat

    def stale(path: str | Path, *args: Any, **words: Any) -> os.stat_result:
        if str(path).endswith("/lab/2/retired"):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return stat(path, *args, **words)

    def unreadable(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", unreadable)
    assert [one.version for one in catalog_of(tmp_path)().images] == ["2", "1"]
    monkeypatch.setattr(os, "stat", stale)
    catalog = catalog_of(tmp_path)()
    assert [one.version for one in catalog.images] == ["1"]
    assert "/lab/2/retired" in "".join(catalog.problems)


def test_while_the_folders_cannot_be_read_the_last_catalog_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("portal.adapters.catalog.FRESH_SECONDS", -1.0)
    image(tmp_path, "lab", "1")
    catalog = catalog_of(tmp_path)
    known = catalog()

    def stale(*_: object) -> Iterator[Any]:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", stale)
        for _ in range(2):
            assert catalog().images == known.images
        assert caplog.text.count(os.strerror(errno.ESTALE)) == 1
        with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
            catalog_of(tmp_path)()
    assert catalog() == known


@pytest.mark.parametrize("fault", ["toml", "no toml", "no link", "dangling", "retired"])
def test_files_of_an_image_that_is_left_out_are_known(tmp_path: Path, fault: str) -> None:
    image(tmp_path, "lab", "1")
    image(tmp_path, "lab", "2")
    folder = tmp_path / "images" / "lab" / "1"
    (folder / "image.sif").rename(folder / "image-0123456789abcdef.sif")
    if fault != "no link":
        file = "nothing" if fault == "dangling" else "image-0123456789abcdef.sif"
        (folder / "image.sif").symlink_to(file)
    if fault == "no toml":
        (folder / "image.toml").unlink()
    elif fault in ("toml", "retired"):
        (folder / "image.toml").write_text('title = "Lab')
    if fault == "retired":
        (folder / "retired").touch()
    (folder.parent / "README").write_text("no image")
    catalog = catalog_of(tmp_path)()
    assert [one.version for one in catalog.images] == ["2"]
    (left_out,) = catalog.left_out
    assert (left_out.environment, left_out.version) == ("lab", "1")
    assert left_out.retired is (fault == "retired")
    names = ["image-0123456789abcdef.sif", *(["image.sif"] if fault != "no link" else [])]
    assert [file.path for file in left_out.files] == [str(folder / name) for name in names]
    assert len(catalog.problems) == (fault in ("toml", "no toml", "retired"))
