"""The pictures in the guides are taken by the browser tests, and small.

`UPDATE_SCREENSHOTS=1 bash tests/run.sh browser` takes them again.
"""

from __future__ import annotations

import re
import struct
import zlib

import pytest

from tests.browser.smaller import SIGNATURE, _chunks, smaller
from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "browser" / "screenshots"
PAGES = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
MOST = 112_000


def used() -> set[str]:
    """The names of the pictures on all pages, without their endings."""
    found = re.compile(r"\((?:\.\./pictures/|pictures/|tests/browser/screenshots/)([\w-]+)\.png\)")
    return {name for page in PAGES for name in found.findall(page.read_text(encoding="utf-8"))}


def literals() -> set[str]:
    """All short texts of the browser tests; some add a theme or a width to a picture's name."""
    files = (ROOT / "tests" / "browser").glob("test_*.py")
    return {one for file in files for one in re.findall(r'"([a-z0-9-]{4,40})"', file.read_text())}


def test_pages_have_pictures() -> None:
    assert len(used()) >= 7


@pytest.mark.parametrize("name", sorted(used()))
def test_a_picture_is_small_and_taken_by_a_test(name: str) -> None:
    content = (FOLDER / f"{name}.png").read_bytes()
    assert content.startswith(SIGNATURE)
    assert len(content) <= MOST
    assert any(name == text or name.startswith(f"{text}-") for text in literals())


def test_pictures_that_are_made_smaller_look_the_same() -> None:
    def png(rows: list[bytes], width: int) -> bytes:
        header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
        data = zlib.compress(b"".join(rows))
        parts = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
        return SIGNATURE + b"".join(
            struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d))
            for n, d in parts
        )

    # Each of PNG's filters once: 10, 20, 30 and then what the filter predicts, plus 1.
    rows = [bytes([kind, 10, 20, 30, 1, 1, 1]) for kind in range(5)]
    made = smaller(png(rows, 2))
    parts = dict(_chunks(made))
    colours = [parts[b"PLTE"][i : i + 3] for i in range(0, len(parts[b"PLTE"]), 3)]
    lines = zlib.decompress(parts[b"IDAT"])
    seen = [[colours[i] for i in lines[y * 3 + 1 : y * 3 + 3]] for y in range(5)]
    assert seen == [
        [bytes((10, 20, 30)), bytes((1, 1, 1))],
        [bytes((10, 20, 30)), bytes((11, 21, 31))],
        [bytes((20, 40, 60)), bytes((12, 22, 32))],
        [bytes((20, 40, 60)), bytes((17, 32, 47))],
        [bytes((30, 60, 90)), bytes((31, 61, 91))],
    ]
