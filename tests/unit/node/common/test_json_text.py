"""Any text ends as a value that can be stored and sent, or as an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.node.common.json_text import MAX_DEPTH, NotJson, decode_json, decode_object

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


def nested(depth: int, inside: str = "1") -> str:
    return '{"a":[' * (depth // 2) + inside + "]}" * (depth // 2)


@pytest.mark.parametrize("inside", ["1", '"\\\\"', '"\\""', '"[{[{"', "[]", '""', '"\\\\\\"["'])
def test_the_depth_is_bounded_before_anything_is_parsed(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brackets = ",".join(["[]"] * 100)
    assert decode_json(f"[{brackets}, {nested(MAX_DEPTH - 2, inside)}]")
    monkeypatch.setattr("json.loads", lambda *_: pytest.fail("parsed"))
    for text in (nested(MAX_DEPTH + 2, inside), "[" * 100, '["\\\\", "\\"", ' + "[" * 100):
        with pytest.raises(NotJson, match="is nested too deeply"):
            decode_json(text)


def test_brackets_in_strings_do_not_count() -> None:
    text = '"' + "[{" * 1000 + '\\"' + "[" * 1000 + '\\\\"'
    assert decode_json(text) == json.loads(text)
    assert decode_object('{"' + "[" * 1000 + '": [[]]}')


def test_numbers_of_any_length() -> None:
    assert decode_json("9" * 1_000_000) == 10**30
    assert decode_json("-" + "9" * 1_000_000) == -(10**30)
    assert decode_json("0." + "9" * 1_000_000) == 1.0


def test_a_duplicate_among_many_keys_is_found_in_linear_time() -> None:
    keys = ",".join(f'"{number}": 0' for number in range(200_000))  # squared: half an hour
    with pytest.raises(NotJson, match='has the key "199999" twice'):
        decode_json(f'{{{keys}, "199999": 1}}')


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"'])
def test_only_objects(text: str) -> None:
    with pytest.raises(NotJson, match="is not a JSON object"):
        decode_object(text)
    assert decode_object('{"a": []}') == {"a": []}


@given(st.binary() | st.text() | VALUES.map(json.dumps))
def test_whatever_is_accepted_can_be_written(text: str | bytes) -> None:
    try:
        found = decode_json(text)
    except NotJson:
        return
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
