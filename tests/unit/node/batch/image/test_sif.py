"""Checks of SIF files before Apptainer opens them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.batch.image import ImageError, sif
from tests.unit.node.batch.image.conftest import make_sif

OTHER = "arm64" if sif.architecture() == "amd64" else "amd64"


def check(tmp_path: Path, data: bytes, max_mb: int = 1) -> None:
    file = tmp_path / "a.sif"
    file.write_bytes(data)
    with file.open("rb") as stream:
        sif.check(stream.fileno(), "images/a.sif", max_mb)


def test_a_whole_image_of_this_architecture_passes(tmp_path: Path) -> None:
    check(tmp_path, make_sif())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "images/a.sif is not an Apptainer image (SIF)"),
        (b"#!/bin/sh\n" * 100, "images/a.sif is not an Apptainer image (SIF)"),
        (make_sif()[:100], "images/a.sif is broken: it is shorter than its header says"),
        (make_sif(said=101), "images/a.sif is broken: it is shorter than its header says"),
        (make_sif(said=-5), "images/a.sif is broken: it is shorter than its header says"),
        (make_sif(OTHER), f"images/a.sif is made for {OTHER}, but the node is"),
        (make_sif(data=b"x" * (1 << 20)), "images/a.sif has 1 MiB, and images may have 1 MiB here"),
    ],
)
def test_what_cannot_run_here_is_named(data: bytes, text: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError) as error:
        check(tmp_path, data)
    assert str(error.value).startswith(text)


def test_an_unknown_architecture_is_none_of_this_node(tmp_path: Path) -> None:
    data = bytearray(make_sif())
    data[45:47] = b"99"
    with pytest.raises(ImageError, match="made for an unknown architecture"):
        check(tmp_path, bytes(data))


def test_a_hole_of_a_terabyte_is_refused_without_reading_it(tmp_path: Path) -> None:
    file = tmp_path / "a.sif"
    file.write_bytes(make_sif())
    os.truncate(file, 1 << 40)
    with file.open("rb") as stream, pytest.raises(ImageError, match="has 1,048,576 MiB"):
        sif.check(stream.fileno(), "a.sif", 1024)
