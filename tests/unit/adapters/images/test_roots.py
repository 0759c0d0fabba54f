"""An image's file system while it is a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from portal.adapters.images.roots import LocalRoots
from portal.adapters.images.site import INSIDE, Site
from portal.core.images.inventory import Contents, Package
from portal.core.images.names import ImageError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="others need user namespaces")
CONTENTS = Contents(environment="r", version="4", title="R", sources="ab", origin="Debian trixie")


def write(root: Path, place: str, text: str = "") -> Path:
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work" / "image"
    write(place, "etc/apt/apt.conf.d/own")
    write(place, "etc/dpkg/dpkg.cfg.d/own")
    (place / "var/lib/dpkg").mkdir(parents=True)
    return place


@pytest.fixture
def roots(tmp_path: Path) -> LocalRoots:
    ca = write(tmp_path, "ca.crt", "secret mirror")
    return LocalRoots(tmp_path / "bases", Site(ca=ca), ids=False, note=lambda _: None)


def test_what_was_lent_is_gone_after_the_build(roots: LocalRoots, root: Path) -> None:
    write(root, "dev/null")
    roots.lend(root, "trixie")
    assert (root / INSIDE).exists()
    for place in ("var/lib/apt/lists/x", "var/log/apt/term.log", "tmp/x", "etc/pip.conf"):
        write(root, place)
    roots.take_back(root)
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert found == {
        "etc/apt/apt.conf.d/own",
        "etc/dpkg/dpkg.cfg.d/own",
        "etc/dpkg/dpkg.cfg.d/slim",
    }
    assert (root / "var/lib/apt/lists/partial").is_dir()


def test_images_without_our_base_are_left_as_they_are(roots: LocalRoots, root: Path) -> None:
    kept = write(root, "var/log/kept")
    roots.take_back(root)
    assert kept.exists()


def test_a_base_has_to_be_a_debian(roots: LocalRoots, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(ImageError, match="it has to be a Debian"):
        roots.lend(tmp_path / "bare", "trixie")


def test_the_inventory_does_not_leave_the_image(roots: LocalRoots, root: Path) -> None:
    status = "Package: bash\nStatus: install ok installed\nVersion: 5\n"
    write(root, "var/lib/dpkg/status", status)
    write(root, "usr/lib/os-release", 'PRETTY_NAME="Debian 13"\n')
    (root / "etc/os-release").symlink_to("../usr/lib/os-release")
    (root / "opt/lib/numpy-2.0.dist-info").mkdir(parents=True)
    packages = [Package("deb", "bash", "5"), Package("pip", "numpy", "2.0")]
    assert roots.inspect(root) == ("Debian 13", packages)
    outside = write(root.parent, "os-release", 'PRETTY_NAME="the host"\n')
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").symlink_to(outside)
    assert roots.inspect(root)[0] == ""


def test_an_image_is_described(roots: LocalRoots, root: Path) -> None:
    write(root, ".singularity.d/labels.json", '{"Author": "me"}')
    write(root, ".singularity.d/Singularity", "from: /var/tmp/x")
    write(root, ".singularity.d/bootstrap_history/Apptainer0", "from: /var/tmp/x")
    roots.describe(root, CONTENTS, "Bootstrap: localimage")
    folder = root / ".singularity.d"
    assert json.loads((folder / "labels.json").read_text())["Author"] == "me"
    assert json.loads((folder / "slipway.json").read_text())["title"] == "R"
    assert (folder / "Singularity").read_text() == "Bootstrap: localimage\n"
    assert not (folder / "bootstrap_history").exists()
    metadata = json.loads(root.with_name("inspect-metadata.json").read_text())
    assert metadata["data"]["attributes"]["labels"]["slipway.environment"] == "r"


def test_a_base_is_made_once_a_day_and_an_old_one_serves_if_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'mkdir -p "$3/etc" "$3/dev"; echo $2 > "$3/etc/suite"; touch "$3/dev/null"'
    program = write(
        tmp_path, "bin/debootstrap", f"#!/bin/sh\necho made >> {tmp_path}/log\n{script}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    notes: list[str] = []
    roots = LocalRoots(tmp_path / "bases", Site(), ids=False, note=notes.append)
    assert not roots.has_base("trixie")
    for number in range(2):
        work = tmp_path / f"work{number}"
        work.mkdir()
        roots.make_base("trixie", work / "base")
        assert (work / "base/etc/suite").read_text() == "trixie\n"
        assert not (work / "base/dev/null").exists()
    assert (tmp_path / "log").read_text() == "made\n"
    assert [path.name for path in (tmp_path / "bases").iterdir()] == ["trixie.tar"]
    os.utime(tmp_path / "bases/trixie.tar", (0, 0))
    program.write_text("#!/bin/sh\necho no mirror\nexit 1\n")
    roots.make_base("trixie", tmp_path / "old")
    assert (tmp_path / "old/etc/suite").exists()
    assert notes[-1].startswith("Using the base system of ")
    with pytest.raises(ImageError, match="no mirror"):
        roots.make_base("sid", tmp_path / "none")
