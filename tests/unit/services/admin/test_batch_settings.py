"""What the portal writes for `slipway sbatch` is what the command reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portal.core.admin.images import ImageRequest
from portal.core.auth.person import Person
from portal.node.batch.settings import Settings
from tests.support.fakes import make_world
from tests.support.sif import sif
from tests.unit.web.conftest import make_settings

ADMIN = Person("admin", True, "a")


@pytest.mark.parametrize("invalid", [(), ("1",), ("2",), ("1", "2")])
def test_files_of_hidden_and_retired_images(tmp_path: Path, invalid: tuple[str, ...]) -> None:
    """Also of those whose descriptions have become invalid."""
    for version in ("1", "2"):
        place = tmp_path / "images" / "tool" / version
        place.mkdir(parents=True)
        (place / "image.toml").write_text(f'title = "Tool {version}"\n')
        (place / "image.sif").write_bytes(sif(b"x", id=version.encode() * 16))
    (tmp_path / "images/tool/1/retired").touch()
    services = make_world(make_settings(tmp_path), images=tmp_path / "images").services
    rule = ImageRequest(seen_by="except", users=("alice",))
    services.administration.save_image_rule(ADMIN, services.catalog(), "tool", "2", rule)

    for version in invalid:
        (tmp_path / "images" / "tool" / version / "image.toml").write_text('title = "Tool')
    services.catalog._cached = None  # type: ignore[attr-defined]
    found = Settings(json.loads(services.batch_settings.text()))
    assert [image.name for image in found.images] == ([] if "2" in invalid else ["tool/2"])
    two = (f"{tmp_path}/images/tool/2/image.sif", (b"2" * 16).hex(), "it is not offered to you")
    reason = "tool 1 was retired by an administrator"
    one = (f"{tmp_path}/images/tool/1/image.sif", (b"1" * 16).hex(), reason)
    for user, refused in (("alice", [two, one]), ("bob", [one])):
        files = found.refused_files(user)
        assert [(file.path, file.id, file.reason) for file in files] == refused
