"""Any text ends as a value that can be stored and sent, or as an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.core.json_text import MAX_DEPTH, NotJson, decode_json, decode_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "NaN",
        "[-Infinity]",
        "1e999",
        "-1e999",
        '"\\ud800"',
        '{"\\uDFFF": 1}',
        '{"a": 1, "a": 2}',
        b"\xff",
        b'"\xed\xa0\x80"',
        "",
        "{",
    ],
)
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises(NotJson):
        decode_json(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"[{":', "}")])
def test_nesting_is_bounded_before_it_is_parsed(opening: str, closing: str) -> None:
    value = f'"{"[" * 1000}\\""'  # brackets of texts do not count
    assert decode_json(opening * MAX_DEPTH + value + closing * MAX_DEPTH)
    with pytest.raises(NotJson, match="nested too deeply"):
        decode_json(opening * (MAX_DEPTH + 1) + value + closing * (MAX_DEPTH + 1))


def test_numbers_of_any_length() -> None:
    assert decode_json("9" * 1_000_000) == 10**30
    assert decode_json("-" + "9" * 1_000_000) == -(10**30)
    assert decode_json("0." + "9" * 1_000_000) == 1.0


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"'])
def test_only_objects(text: str) -> None:
    with pytest.raises(NotJson, match="is not a JSON object"):
        decode_object(text)
    assert decode_object('{"a": []}') == {"a": []}


@settings(deadline=None)  # a busy machine takes 0.5 s for any text
@given(st.binary() | st.text() | VALUES.map(json.dumps))
def test_whatever_is_accepted_can_be_written(text: str | bytes) -> None:
    try:
        found = decode_json(text)
    except NotJson:
        return
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
