"""What a build borrows from its machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.adapters.images.site import INSIDE, NPMRC, Site, borrowed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work" / "base"
    (place / "etc/apt/apt.conf.d").mkdir(parents=True)
    (place / "etc/apt/sources.list").write_text("deb http://deb.example.org trixie main\n")
    return place


def test_everything_is_lent_and_the_images_own_is_kept(root: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("apt.conf", "pip.conf", "ca.crt", "npmrc")}
    for name, file in files.items():
        file.write_text(name)
    site = Site("http://mirror.example.org/debian/", *files.values())
    site.lend(root, "trixie")
    assert not (root / "etc/apt/sources.list").exists()
    sources = (root / "etc/apt/sources.list.d/site.sources").read_text()
    assert "URIs: http://mirror.example.org/debian/\nSuites: trixie trixie-updates\n" in sources
    assert "URIs: http://mirror.example.org/debian-security\nSuites: trixie-security\n" in sources
    lent = ("etc/apt/apt.conf.d/90site", "etc/pip.conf", str(INSIDE), str(NPMRC))
    assert [(root / place).read_text() for place in lent] == list(files)
    original = borrowed(root)
    assert original is not None
    assert (original / "sources.list").exists()
    assert borrowed(tmp_path / "elsewhere" / "base") is None


def test_nothing_is_lent_that_is_not_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLIPWAY_MIRROR", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SITE_CA", str(tmp_path / "none"))
    (tmp_path / "apt.conf").touch()
    site = Site.of_machine(tmp_path)
    assert site == Site()
    site.lend(root, "trixie")
    assert (root / "etc/apt/sources.list").exists()
    assert not (root / INSIDE).exists()


def test_the_mirror_is_the_first_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPWAY_MIRROR", raising=False)
    (tmp_path / "mirror").write_text("http://mirror.example.org/debian\nother\n")
    assert Site.of_machine(tmp_path).mirror == "http://mirror.example.org/debian"
    monkeypatch.setenv("SLIPWAY_MIRROR", "http://near.example.org/debian")
    assert Site.of_machine(tmp_path).mirror == "http://near.example.org/debian"
