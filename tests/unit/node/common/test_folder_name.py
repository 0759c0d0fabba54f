"""Which storage folders a session can have."""

from __future__ import annotations

import re

import pytest

from portal.node.common.folder_name import PATTERN, name_problem

GOOD = ("über", "데이터", "a b", "Data-2 (2)", "-rf", "a.b", "$(id)", "home2", "x" * 255, "é" * 127)


@pytest.mark.parametrize("name", GOOD)
def test_a_session_can_have_it(name: str) -> None:
    assert name_problem(name) == ""
    assert re.fullmatch(PATTERN, name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "write the folder's name"),
        ("home", "stands for your home directory"),
        (".ssh", "dot"),
        ("..", "dot"),
        ("a/b", '"/"'),
        ("a\nb", "line breaks"),
        ("a\x1b[1m", "control characters"),
        ("a\u2028b", "line breaks"),
        ("caf\ufffd", "UTF-8"),
        ("x" * 256, "255 bytes"),
        ("é" * 128, "255 bytes"),
    ],
)
def test_why_a_session_cannot(name: str, problem: str) -> None:
    assert problem in name_problem(name)


def test_a_name_in_another_encoding_is_no_text() -> None:
    assert "UTF-8" in name_problem(b"caf\xe9".decode(errors="surrogateescape"))
