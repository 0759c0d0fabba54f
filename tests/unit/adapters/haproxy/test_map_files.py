"""Entries are changed in place: at no moment does the file have a part of one, or a removed one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.adapters.haproxy import map_files
from portal.adapters.haproxy.map_files import CANARY, HUB, ROUTES, MapFiles
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.errors import Unavailable

A, B, C = ("~files." + digit * 64 for digit in "abc")
START = {A: "10.0.0.1@1@x", B: "10.0.0.1@2@y"}
PREFIX = "files." + "a" * 64
"""Ends as the key A does."""


@pytest.fixture
def files(tmp_path: Path) -> MapFiles:
    made = MapFiles(str(tmp_path))
    made.write(ROUTES, START)
    assert made.set_complete(made.id(ROUTES))
    return made


def as_haproxy_reads(folder: Path) -> list[tuple[str, str]]:
    """The entries of the file, as HAProxy reads it (configuration manual, "map")."""
    lines = (folder / ROUTES).read_text().split("\n")
    found = [
        (key, to) for key, _, to in (line.partition(" ") for line in lines) if key[:1] not in "#"
    ]
    return [(key, to) for key, to in found if key != CANARY]


def test_entries_are_set_and_removed(files: MapFiles, tmp_path: Path) -> None:
    files.set(ROUTES, {C: "10.0.0.1@3@z"})
    files.set(ROUTES, {A: "10.0.0.1@9@x"})
    files.remove(ROUTES, [B, "~files." + "0" * 64])
    expected = {C: "10.0.0.1@3@z", A: "10.0.0.1@9@x"}
    assert files.read(ROUTES) == expected
    assert dict(as_haproxy_reads(tmp_path)) == expected
    assert len(as_haproxy_reads(tmp_path)) == 2
    assert files.is_complete()
    files.set(ROUTES, {B: "10.0.0.1@2@y"})
    assert files.read(ROUTES) == expected | {B: "10.0.0.1@2@y"}
    assert (tmp_path / ROUTES).stat().st_mode & 0o777 == 0o600


def test_what_is_there_already_is_not_written_again(files: MapFiles, tmp_path: Path) -> None:
    before = (tmp_path / ROUTES).read_bytes()
    files.set(ROUTES, {A: START[A]})
    assert (tmp_path / ROUTES).read_bytes() == before


def test_a_key_that_ends_like_another_one(files: MapFiles) -> None:
    files.set(ROUTES, {PREFIX: "10.0.0.1@5@x"})
    files.remove(ROUTES, [PREFIX])
    assert files.read(ROUTES) == START


def test_a_map_that_is_missing_is_made(tmp_path: Path) -> None:
    files = MapFiles(str(tmp_path))
    files.remove(ROUTES, [A])
    files.set(ROUTES, {A: "10.0.0.1@1@x"})
    assert files.read(ROUTES) == {A: "10.0.0.1@1@x"}
    assert not files.is_complete()


class _Killed(BaseException):
    """The process ends here."""


class Cut:
    """A process that is killed in one of its writes, after so many bytes of it."""

    def __init__(self, last: int, length: int) -> None:
        self._left, self._length, self._write = last, length, os.pwrite

    def __call__(self, fd: int, data: bytes, place: int) -> int:
        if not self._left:
            self._write(fd, data[: self._length], place)
            raise _Killed
        self._left -= 1
        return self._write(fd, data, place)


@pytest.mark.parametrize("length", [0, 1, 20, 5000])
@pytest.mark.parametrize("last", range(3))
@pytest.mark.parametrize("key", [A, C])
def test_a_crash_at_any_write_leaves_the_earlier_entry_the_new_one_or_none(
    files: MapFiles, tmp_path: Path, key: str, last: int, length: int
) -> None:
    """The next change works nevertheless, in this process and in another one."""
    new = "10.0.0.1@7@new"
    with pytest.MonkeyPatch.context() as patch, suppress(_Killed):
        patch.setattr(os, "pwrite", Cut(last, length))
        files.set(ROUTES, {key: new})
    seen = as_haproxy_reads(tmp_path)
    assert len(seen) == len(dict(seen)), "no key twice"
    assert dict(seen).get(key) in (START.get(key), new, None)
    assert dict(seen) | {key: new} == START | {key: new}
    other = MapFiles(str(tmp_path))
    other.set(ROUTES, {key: new})
    assert files.read(ROUTES) == dict(as_haproxy_reads(tmp_path)) == START | {key: new}
    files.remove(ROUTES, [key])
    assert key not in dict(as_haproxy_reads(tmp_path))


@pytest.mark.parametrize("length", [0, 1, 100])
@pytest.mark.parametrize("last", range(6))
def test_a_crash_in_a_batch_leaves_complete_entries(
    files: MapFiles, tmp_path: Path, last: int, length: int
) -> None:
    """Each of them is the earlier one, the new one or none; the next batch completes them."""
    new = {A: "10.0.0.1@7@new", B: START[B], C: "10.0.0.1@8@new", PREFIX: "10.0.0.1@9@new"}
    with pytest.MonkeyPatch.context() as patch, suppress(_Killed):
        patch.setattr(os, "pwrite", Cut(last, length))
        files.set(ROUTES, new)
    seen = as_haproxy_reads(tmp_path)
    assert len(seen) == len(dict(seen))
    assert all(to in (START.get(key), new[key]) for key, to in seen)
    assert dict(seen)[B] == START[B]
    files.set(ROUTES, new)
    assert files.read(ROUTES) == dict(as_haproxy_reads(tmp_path)) == new


def test_without_room_nothing_is_changed(
    files: MapFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, place: write(fd, data[:5], place))
    with pytest.raises(Unavailable, match="No space left"):
        HaproxyRoutes(str(tmp_path)).add(C, "10.0.0.1@3@z")
    monkeypatch.undo()
    assert files.read(ROUTES) == START


def test_a_removal_that_cannot_be_written_empties_the_file(
    files: MapFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reload without routes refuses; one with the removed one would open."""

    def fails(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pwrite", fails)
    with pytest.raises(OSError, match="Input/output"):
        files.remove(ROUTES, [A])
    monkeypatch.undo()
    assert files.read(ROUTES) == {}
    assert not files.is_complete()


def test_removed_entries_do_not_pile_up(
    files: MapFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_files, "_MOST_COMMENTS", 10)
    for number in range(50):
        files.set(ROUTES, {C: f"10.0.0.1@{number}@z"})
    size = (tmp_path / ROUTES).stat().st_size
    files.compact(ROUTES)
    assert (tmp_path / ROUTES).stat().st_size < size / 5
    assert files.read(ROUTES) == START | {C: "10.0.0.1@49@z"}
    assert files.is_complete()
    before = (tmp_path / ROUTES).read_bytes()
    files.compact(ROUTES)
    assert (tmp_path / ROUTES).read_bytes() == before
    files.remove(ROUTES, [C])
    assert files.read(ROUTES) == START


def test_a_map_of_paths_gets_no_entry_of_the_routes(
    files: MapFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_files, "_MOST_COMMENTS", -1000)
    files.set(HUB, {"/hub/user/alice/": "key"})
    files.compact(HUB)
    assert files.is_complete()
    assert not (tmp_path / HUB).read_text().startswith(CANARY)


def test_only_what_was_appended_is_read_again(
    files: MapFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.set(ROUTES, {f"a{number}.public": "10.0.0.1@1@x" for number in range(1000)})
    files.set(ROUTES, {C: "10.0.0.1@3@z"})
    size, read = 0, os.pread

    def counted(fd: int, length: int, place: int) -> bytes:
        nonlocal size
        size += length
        return read(fd, length, place)

    monkeypatch.setattr(os, "pread", counted)
    files.set(ROUTES, {C: "10.0.0.1@4@z"})
    files.remove(ROUTES, ["a7.public", A])
    assert 0 < size < 2000


@pytest.mark.parametrize("text", ["", "#lipway 01", "slipway 1\n", f"{A} {START[A]}\n#x\n{B} 1"])
def test_a_file_of_another_program_is_taken_over(
    files: MapFiles, tmp_path: Path, text: str
) -> None:
    """A start of HAProxy empties it; earlier releases had no id in it; a crash may cut it off."""
    earlier = files.id(ROUTES)
    (tmp_path / ROUTES).write_text(text)
    complete, entries = files.is_complete(), files.read(ROUTES)
    assert complete == text.startswith("slipway")
    assert not files.set_complete(earlier)
    assert files.id(ROUTES) != earlier
    assert files.is_complete() == complete
    files.set(ROUTES, {C: "10.0.0.1@3@z"})
    files.remove(ROUTES, [A])
    entries.pop(A, None)
    assert files.read(ROUTES) == dict(as_haproxy_reads(tmp_path)) == entries | {C: "10.0.0.1@3@z"}
    assert files.set_complete(files.id(ROUTES))
    assert files.is_complete()


KEYS = st.sampled_from([A, B, C, PREFIX])
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2]),
        st.tuples(st.just("set"), KEYS, st.sampled_from(["1@1@x", "2@2@y"]))
        | st.tuples(st.just("remove"), KEYS, st.just(""))
        | st.tuples(st.sampled_from(["compact", "start", "complete"]), st.just(""), st.just("")),
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_the_file_follows_all_changes(
    tmp_path: Path, steps: list[tuple[int, tuple[str, str, str]]]
) -> None:
    """Several processes change it in turns, each with what it knows from before."""
    processes, expected = [MapFiles(str(tmp_path)) for _ in range(3)], dict(START)
    processes[0].write(ROUTES, expected)
    complete = False
    for number, (kind, key, to) in steps:
        files = processes[number]
        if kind == "set":
            files.set(ROUTES, {key: to, A: to})
            expected |= {key: to, A: to}
        elif kind == "remove":
            files.remove(ROUTES, [key])
            expected.pop(key, None)
        elif kind == "compact":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(map_files, "_MOST_COMMENTS", -1000)
                files.compact(ROUTES)
        elif kind == "complete":
            complete = files.set_complete(files.id(ROUTES))
        else:
            (tmp_path / ROUTES).write_bytes(b"")
            complete, expected = False, {}
        seen = as_haproxy_reads(tmp_path)
        assert dict(seen) == files.read(ROUTES) == expected
        assert len(seen) == len(expected)
        assert files.is_complete() == complete
