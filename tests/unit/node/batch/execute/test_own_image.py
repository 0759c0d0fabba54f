"""A batch job's own image is looked at again on the node, by the rules that are there."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from portal.node.batch.execute.own_image import find_image
from portal.node.batch.image import ImageError
from portal.node.batch.request import Request
from tests.unit.node.batch.conftest import site
from tests.unit.node.batch.image.conftest import make_sif

ME = pwd.getpwuid(os.getuid()).pw_name


def asked_for(file: Path) -> Request:
    request = Request()
    request.own, request.image, request.max_mb = True, str(file), 1
    return request


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image of the user's; there are no settings yet."""
    file = tmp_path / "mine.sif"
    file.write_bytes(make_sif())
    monkeypatch.setenv("SLIPWAY_BATCH_SETTINGS", str(tmp_path / "batch.json"))
    return file


def write(folder: Path, **changes: object) -> None:
    (folder / "batch.json").write_text(json.dumps(site(**changes)))


def test_a_file_that_was_exchanged_for_a_hidden_image(image: Path) -> None:
    files = [["/i/r4.sif", (b"i" * 16).hex()]]
    hidden = {"environment": "r", "version": "4", "path": "/i/r4.sif", "files": files}
    write(image.parent, images=[{**hidden, "hidden_from": [ME]}])
    with pytest.raises(
        ImageError, match=r"mine\.sif is one of the site's images: it is not offered"
    ):
        find_image(asked_for(image))


def test_what_waits_keeps_an_image_that_was_retired_since(image: Path) -> None:
    old = {"environment": "r", "version": "4", "path": str(image), "files": [[str(image), ""]]}
    write(image.parent, retired=[old])
    (descriptor,) = find_image(asked_for(image))
    os.close(descriptor)


def test_a_node_without_settings_runs_what_was_looked_at_before(image: Path) -> None:
    (descriptor,) = find_image(asked_for(image))
    os.close(descriptor)
