"""The manifest of a backup that somebody else has made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.backup.manifest import MOST_FILES, BadBackup, describe, parse
from tests.support.backup_archives import manifest, member


def refusal(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(BadBackup) as error:
        parse(raw)
    text = str(error.value)
    assert text.isprintable()
    assert len(text) < 300
    return text


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is not valid JSON"),
        (b"\xff", "not valid UTF-8"),
        (b"[]", "is not a JSON object"),
        (b"[" * 4_000_000, "is nested too deeply"),
        (b'{"members":' * 500_000, "is nested too deeply"),
        (b'{"format": NaN}', "is not valid JSON"),
        (b'{"format": 1e999}', "too large"),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"host": "\\ud800"}', "not valid UTF-8"),
    ],
)
def test_what_is_no_json_object(raw: bytes, words: str) -> None:
    assert words in refusal(raw)


ODD: list[Any] = [None, True, "x", "3", [], {}, -1, 1.5, 1e300, 2**63, 10**40]


@pytest.mark.parametrize("size", ODD)
def test_odd_sizes(size: Any) -> None:
    data = manifest(members={"state/a": {"size": size, "sha256": "0" * 64}})
    assert refusal(data).startswith("manifest.json in it cannot be read: 'members.state/a.size':")


@pytest.mark.parametrize("digest", [*ODD, "0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n"])
def test_odd_checksums(digest: Any) -> None:
    data = manifest(members={"state/a": {"size": 0, "sha256": digest}})
    assert "'members.state/a.sha256'" in refusal(data)


@pytest.mark.parametrize("field", ["release", "schema_revision", "made", "host", "database"])
@pytest.mark.parametrize("value", [None, 1, [], "x" * 201, "a\x1b[2J", "a\nb", "\u202e"])
def test_odd_texts(field: str, value: Any) -> None:
    assert f"'{field}'" in refusal(manifest(**{field: value}))


@pytest.mark.parametrize("number", [0, 2, -1, 10**100])
def test_other_formats(number: int) -> None:
    assert "this release reads 1" in refusal(manifest(format=number))


@pytest.mark.parametrize("number", [None, "1", 1.5, [], {}])
def test_formats_that_are_no_number(number: Any) -> None:
    assert "'format'" in refusal(manifest(format=number))


@pytest.mark.parametrize("members", [None, [], "x", {"a": None}, {"a": []}, {"a": {}}])
def test_odd_lists_of_files(members: Any) -> None:
    assert "'members" in refusal(manifest(members=members))


NAMES = ["", ".", "..", "../evil", "/etc/evil", "state/../../evil", "state/.hidden", "state//a",
         "state/a/", "a/b/c/d", "state/a\n", "state/\x1b[2J", "st\u00e4te", "state\\a", "x" * 101,
         "x" * 100_000, "manifest.json"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_odd_names(name: str) -> None:
    assert refusal(manifest(members={name: member(b"")})).startswith("it has a file of the name ")


def test_a_name_that_is_both_a_file_and_a_folder() -> None:
    members = {"state/a": member(b""), "state": member(b"")}
    text = "it has 'state' both as a file and as a folder"
    assert refusal(manifest(members=members)) == text


def test_too_many_files() -> None:
    members = {f"state/{number}": member(b"") for number in range(MOST_FILES + 1)}
    assert refusal(manifest(members=members)) == "it has 1001 files, and may have 1000"


def test_fields_of_later_releases_are_left_out() -> None:
    assert parse(json.dumps(manifest(later=[1])).encode()).host == "portal.example.org"


@pytest.mark.parametrize("name", ["a b", "notes~", "x" * 101])
def test_no_backup_is_made_that_could_not_be_restored(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(BadBackup, match="it has a file of the name"):
        describe(tmp_path)
