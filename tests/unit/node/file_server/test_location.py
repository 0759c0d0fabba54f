"""Names for second ones."""

from __future__ import annotations

from itertools import islice

import pytest

from portal.node.file_server.location import alternatives, marked


@pytest.mark.parametrize(
    ("name", "is_folder", "expected"),
    [
        (b"report.pdf", False, b"report (2).pdf"),
        (b"data.tar.gz", False, b"data (2).tar.gz"),
        (b"report (2).pdf", False, b"report (3).pdf"),
        (b"report (x).pdf", False, b"report (x) (2).pdf"),
        (b"python3.11", True, b"python3.11 (2)"),
        (b".bashrc", False, b".bashrc (2)"),
        (b"README", False, b"README (2)"),
        (b"ends.", False, b"ends. (2)"),
        (b"a.b c", False, b"a.b c (2)"),
        (b"caf\xe9.txt", False, b"caf\xe9 (2).txt"),
        (b"line\n.txt", False, b"line\n (2).txt"),
        (b" (1)", False, b" (1) (2)"),
        (b"x" * 255, False, b"x" * 251 + b" (2)"),
        ("é".encode() * 127 + b"x", False, "é".encode() * 125 + b" (2)"),
        (b"x" * 251 + b".txt", False, b"x" * 247 + b" (2).txt"),
    ],
)
def test_a_second_name(name: bytes, is_folder: bool, expected: bytes) -> None:
    assert next(alternatives(name, is_folder=is_folder)) == expected
    assert all(len(other) <= 255 for other in islice(alternatives(name, is_folder=is_folder), 2000))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"report.pdf", b"report (recovered).pdf"),
        (b"data (2).tar.gz", b"data (2) (recovered).tar.gz"),
        (b".bashrc", b".bashrc (recovered)"),
        ("é".encode() * 127 + b"x", "é".encode() * 121 + b" (recovered)"),
    ],
)
def test_a_marked_name(name: bytes, expected: bytes) -> None:
    assert marked(name, b"recovered") == expected
    assert len(expected) <= 255
