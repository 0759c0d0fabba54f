"""`slipway images` with a real Apptainer, in the container that builds the cluster's images."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SCRIPT = """
for part in lib site install build software; do . "$0/$part.sh"; done
choose_engine
CLUSTER_SOFTWARE=$1
shift
slipway_images "$@"
"""
BUSYBOX = "busybox/1.37"
LACKING = """
for part in lib site install build software; do . "$0/$part.sh"; done
choose_engine
CLUSTER_SOFTWARE=$1
build="python -m portal.cli images build busybox/1.37 --images /tmp"
in_builder sh -c "$2; SLIPWAY_BASES=/tmp $build"
"""
"""A build on a machine from which a script has removed something."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that has images/ in it."""
    return tmp_path_factory.mktemp("software")


def images(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `slipway images` in the builder."""
    return subprocess.run(
        ["bash", "-c", SCRIPT, str(ROOT / "cluster"), str(out), *words],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def built(out: Path, *words: str) -> tuple[str, str]:
    """Build BusyBox; returns the name of its file and the SHA-256 of all of it."""
    found = images(out, "build", BUSYBOX, *words)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    link = out / "images" / BUSYBOX / "image.sif"
    return os.readlink(link), hashlib.sha256(link.read_bytes()).hexdigest()


def test_the_same_sources_give_the_same_file_and_it_works(out: Path) -> None:
    first = built(out)
    assert built(out) == first
    assert "is up to date" in images(out, "build", BUSYBOX, "--if-changed").stdout
    assert "busybox/1.37 works" in images(out, "test", BUSYBOX).stdout
    inventory = json.loads(images(out, "show", BUSYBOX, "--json").stdout)
    assert first[0] == f"image-{inventory['digest'][:16]}.sif"
    assert (inventory["title"], inventory["origin"]) == ("BusyBox", "Debian trixie")


def test_a_definition_is_built_beside_it_and_a_broken_one_leaves_nothing(out: Path) -> None:
    folder = out / "images"
    base = f"/out/images/{BUSYBOX}/image.sif"
    lines = [
        "Bootstrap: localimage",
        f"From: {base}",
        "%post",
        "    echo {{ word }} > /word; {{ last }}",
    ]
    (out / "word.def").write_text("\n".join(lines) + "\n")
    order = ("build", "word/1", "--definition", "/out/word.def", "--build-arg", "word=hello")
    broken = images(out, *order, "--build-arg", "last=exit 7")
    assert broken.returncode == 1
    assert "apptainer build failed with status" in broken.stderr
    assert not (folder / "word").exists()
    assert images(out, *order, "--build-arg", "last=true").returncode == 0
    (link,) = folder.glob("word/1/image.sif")
    assert (link.with_name("image.toml")).read_text() == 'title = "Word 1"\n'


def test_an_unreachable_registry_is_answered(out: Path) -> None:
    found = images(out, "build", "tool/1", "--from", "docker://localhost:1/tool:1")
    assert found.returncode == 1
    assert "apptainer build failed with status" in found.stderr
    assert not (out / "images" / "tool").exists()


@pytest.mark.parametrize(
    ("removal", "words"),
    [
        (
            "rm /usr/sbin/debootstrap /usr/bin/mksquashfs",
            (
                "busybox/1.37 cannot be built on this machine:",
                "- mksquashfs is not installed (package squashfs-tools): install it, or build on",
                "- debootstrap is not installed, and the recipe starts from Debian trixie",
                "with `--base docker://debian:trixie-slim` (a registry, a .sif or a folder)",
            ),
        ),
        (
            ": > /etc/subuid",
            ("have no line for root", "adds `root:100000:65536`", "`--from docker://…` needs"),
        ),
        ("rm /usr/bin/newuidmap", ("newuidmap is not installed (package uidmap",)),
    ],
)
def test_what_a_machine_lacks_is_named_with_what_else_works(
    out: Path, removal: str, words: tuple[str, ...]
) -> None:
    found = subprocess.run(
        ["bash", "-c", LACKING, str(ROOT / "cluster"), str(out), removal],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert found.returncode == 1
    for text in words:
        assert text in found.stderr
