"""An environment of broken images and apps on a running cluster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.catalog import wait_for_catalog
from tests.support.cluster import Cluster
from tests.support.paths import ROOT

IMAGES = ROOT / "cluster" / ".cache" / "software" / "images"
APPS = "/usr/share/slipway/apps"
TOML = 'title = "Faulty"\ndescription = "For tests."\napps = ["mute", "breaks", "terminal"]\n'
APP_TOML = 'title = "{title}"\ndescription = "For tests."\nready = "/"\ntimeout = 3\n'


@pytest.fixture(scope="module")
def faulty(cluster: Cluster) -> Iterator[str]:
    """An environment of broken images and apps, next to working ones."""
    # All clusters of a checkout share the images. The name sorts it after the others, since the
    # first one is the launcher's default.
    name = f"unwell-{cluster.project.replace('_', '-')}"
    folder = IMAGES / name
    shutil.rmtree(folder, ignore_errors=True)  # left behind by a killed run
    real = next(IMAGES.glob("python/*/image.sif")).resolve()
    _image(folder / "1.0", lambda sif: sif.write_bytes(b"this is no image\n" * 4096))
    _image(folder / "2.0", lambda sif: sif.touch(mode=0))
    _image(folder / "3.0", lambda sif: sif.hardlink_to(real))
    with _faulty_apps(cluster):
        try:
            yield name
        finally:
            shutil.rmtree(folder)


@contextmanager
def _faulty_apps(cluster: Cluster) -> Iterator[None]:
    scripts = {"mute": "echo saying nothing; sleep 60", "breaks": "echo going down; exit 3"}
    for name, script in scripts.items():
        folder = f"{APPS}/{name}"
        cluster.shell("portal", f"mkdir -p {folder} && cat > {folder}/start.sh <<'E'\n{script}\nE")
        toml = APP_TOML.format(title=name.capitalize())
        cluster.shell("portal", f"cat > {folder}/app.toml <<'E'\n{toml}E")
    wait_for_catalog()
    try:
        yield
    finally:
        cluster.run("portal", "rm", "-rf", *(f"{APPS}/{name}" for name in scripts))
        wait_for_catalog()


def _image(folder: Path, make: Callable[[Path], object]) -> None:
    folder.mkdir(parents=True)
    (folder / "image.toml").write_text(TOML)
    make(folder / "image.sif")
