"""The header If of RFC 4918, 10.4."""

from __future__ import annotations

import time

import pytest

from portal.node.file_server.dav.if_header import parse
from portal.node.file_server.errors import Refused

STATES = {"": ({"urn:a"}, '"1"'), "/x": ({"urn:b", "urn:c"}, '"2"'), "/none": (set(), "")}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("(<urn:a>)", True),
        ("(<urn:b>)", False),
        ('(["1"])', True),
        ('([W/"1"])', False),
        ('(<urn:a> ["1"])', True),
        ('(<urn:a> ["2"])', False),
        ('(<urn:b>) (["1"])', True),
        ("(Not <urn:b>)", True),
        ("(not <urn:a>)", False),
        ("(<DAV:no-lock>)", False),
        ("(<urn:a>) (Not <DAV:no-lock>)", True),
        ('(Not <urn:a> ["1"])', False),
        ("</x> (<urn:b>)", True),
        ("</x> (<urn:a>)", False),
        ("</x> (<urn:a>) </none> (Not <urn:a>)", True),
        ('</x> (<urn:a>) (<urn:c> ["2"])', True),
        ("  ( <urn:a>  ) ", True),
        ('(["1"]<urn:a>)', True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert parse(text).hold(lambda address: STATES[address]) == holds


def test_all_tokens_count_as_sent() -> None:
    text = '</x> (<urn:a>) (Not <urn:b>) </none> (["1"] <DAV:no-lock>)'
    assert parse(text).tokens == {"urn:a", "urn:b", "DAV:no-lock"}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "<urn:a>",
        "()",
        "(<urn:a>",
        "<urn:a>)",
        "(Not)",
        "(Not Not <urn:a>)",
        "((<urn:a>))",
        "(<urn:a) >)",
        "([1])",
        '(["1)',
        "</x>",
        "</x> (<urn:a>) </y>",
        "(<urn:a>) </x> (<urn:a>)",
        "(<urn:a>) Not",
        "(<urn:a>),(<urn:b>)",
    ],
)
def test_malformed(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert (refused.value.status, refused.value.field) == (400, "If")


def test_long_ones_take_no_time() -> None:
    begun = time.monotonic()
    for text in ("(" * 65_000, "(" + " " * 65_000, "(<" + "a" * 65_000, '(["1"] ' * 9_000):
        with pytest.raises(Refused):
            parse(text)
    assert time.monotonic() - begun < 1
