"""Links in an image lead to its own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.adapters.images.links import check_plain, inside
from portal.core.images.names import ImageError


@pytest.mark.parametrize(
    ("link", "target", "place", "found"),
    [
        ("etc", "/usr/etc", "etc/passwd", "usr/etc/passwd"),
        ("etc/os-release", "../usr/lib/os-release", "etc/os-release", "usr/lib/os-release"),
        ("etc/shadow", "../../../../../etc/shadow", "etc/shadow", "etc/shadow2"),
        ("lib", "usr/lib", "lib/apk/db", "usr/lib/apk/db"),
    ],
)
def test_links_are_resolved_in_the_image(
    tmp_path: Path, link: str, target: str, place: str, found: str
) -> None:
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(target.replace("etc/shadow", "etc/shadow2"))
    assert inside(tmp_path, place) == tmp_path / found


def test_a_circle_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert inside(tmp_path, "a/x") is None


def test_a_build_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    check_plain(tmp_path, "var/tmp", "etc/apt")
    (tmp_path / "var/tmp").symlink_to("/tmp")
    with pytest.raises(ImageError, match="/var/tmp is a link in the image"):
        check_plain(tmp_path, "etc/apt", "var/tmp/x")
