"""Each location has one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.files.location import canonical
from portal.errors import InvalidRequest
from portal.node.file_server.location import parse


@pytest.mark.parametrize(
    "text",
    ["storage/x y", "storage//x%20y", "/storage/x%20y/", "%73torage/%78%20y", "storage/%78 y//"],
)
def test_every_spelling_becomes_the_same(text: str) -> None:
    assert canonical(text) == "storage/x%20y"


@pytest.mark.parametrize(
    "text", ["storage/..", "storage/%2e%2e/x", "./x", "a/%2F/b", "a%2fb", "a/%00", "a/\ud800"]
)
def test_what_is_no_name_is_refused_with_its_field(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        canonical(text, "items")
    assert [error.field for error in refused.value.errors] == ["items"]


def test_other_encodings_and_nothing_at_all_are_kept() -> None:
    assert canonical("home/caf%E9") == "home/caf%E9"
    assert canonical("") == canonical("//") == ""


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4))
def test_it_is_what_the_file_server_writes(names: list[bytes]) -> None:
    allowed = all(
        name not in (b".", b"..") and not set(name) & set(b"/\0") and not name.startswith(b".sl")
        for name in names
    )
    text = "/".join(["home", *("".join(f"%{byte:02x}" for byte in name) for name in names)])
    if not allowed:
        return
    found = canonical(text)
    assert found == str(parse(text)) == canonical(found)
