"""Names of images."""

from __future__ import annotations

import pytest

from portal.core.images.names import ImageError, ImageName, parse_name


def test_a_name_has_environment_and_version() -> None:
    assert parse_name("python/3.13") == ImageName("python", "3.13")
    assert str(ImageName("c++", "gcc-14")) == "c++/gcc-14"


@pytest.mark.parametrize(
    "text", ["python", "", "/3.13", "python/", "../3", "a/b/c", "a/..", ".a/1", "a/b\n", "a b/1"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ImageError, match="write ENVIRONMENT/VERSION"):
        parse_name(text)
