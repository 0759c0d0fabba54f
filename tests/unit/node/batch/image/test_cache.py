"""The cache of pulled images: each once, never half, never deleted while in use."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from portal.node.batch.image import ImageError
from portal.node.batch.image.cache import Cache
from portal.node.batch.image.registry import Resolved

MIB = 1 << 20


def image(letter: str, size: int = MIB) -> Resolved:
    return Resolved("sha256:" + letter * 64, size)


class Puller:
    """Pulls a file of a size, and counts."""

    def __init__(self, size: int = MIB) -> None:
        self.size = size
        self.pulls = 0
        self.waits = 0
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def pull(self, folder: str, file: str) -> None:
        self.pulls += 1
        self.begun.set()
        assert self.go_on.wait(10)
        Path(folder, "layer").write_bytes(b"x")
        Path(file).write_bytes(b"x" * self.size)

    def wait(self) -> None:
        self.waits += 1

    def use(self, cache: Cache, wanted: Resolved) -> tuple[int, int]:
        return cache.use(wanted, self.pull, self.wait)


def close(*used: tuple[int, int]) -> None:
    for pair in used:
        for descriptor in pair:
            os.close(descriptor)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "images"


def test_an_image_is_pulled_once_and_kept_read_only(folder: Path) -> None:
    cache, puller = Cache(str(folder), 100), Puller()
    close(puller.use(cache, image("a")), puller.use(cache, image("a")))
    assert puller.pulls == 1
    assert names(folder) == ["a" * 64 + ".sif"]
    assert (folder / ("a" * 64 + ".sif")).stat().st_mode & 0o777 == 0o400
    assert folder.stat().st_mode & 0o777 == 0o700


def test_two_at_once_share_one_pull(folder: Path) -> None:
    cache, puller = Cache(str(folder), 100), Puller()
    puller.go_on.clear()
    found: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(puller.use(cache, image("a"))))
        for _ in range(2)
    ]
    threads[0].start()
    assert puller.begun.wait(10)
    threads[1].start()
    puller.go_on.set()
    for thread in threads:
        thread.join(10)
    assert (puller.pulls, len(found)) == (1, 2)
    close(*found)


def test_a_pull_that_fails_leaves_nothing(folder: Path) -> None:
    cache = Cache(str(folder), 100)

    def fail(place: str, file: str) -> None:
        Path(file).write_bytes(b"half")
        closed = Path(place, "closed")
        closed.mkdir()
        (closed / "file").write_bytes(b"x")
        closed.chmod(0)
        raise ImageError("no")

    with pytest.raises(ImageError):
        cache.use(image("a"), fail, lambda: None)
    assert names(folder) == []


def test_the_next_pull_deletes_what_a_crash_left_but_no_pull_that_runs(folder: Path) -> None:
    cache, other, puller = Cache(str(folder), 100), Puller(), Puller()
    (folder / "pull-crashed").mkdir(parents=True)
    (folder / "pull-crashed" / "image.sif").write_bytes(b"half")
    other.go_on.clear()
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append(other.use(cache, image("b"))))
    thread.start()
    assert other.begun.wait(10)
    close(puller.use(cache, image("a")))
    assert not (folder / "pull-crashed").exists()
    other.go_on.set()
    thread.join(10)
    assert names(folder) == ["a" * 64 + ".sif", "b" * 64 + ".sif"]
    close(*found)


def test_the_image_used_longest_ago_makes_room(folder: Path) -> None:
    cache, puller = Cache(str(folder), 2), Puller()
    for number, letter in enumerate("ab"):
        close(puller.use(cache, image(letter)))
        os.utime(folder / (letter * 64 + ".sif"), (number, number))
    close(puller.use(cache, image("a")))  # used again: now b is the older one
    close(puller.use(cache, image("c")))
    assert names(folder) == ["a" * 64 + ".sif", "c" * 64 + ".sif"]


def test_an_image_in_use_is_never_deleted(folder: Path) -> None:
    cache, puller = Cache(str(folder), 1), Puller()
    used = puller.use(cache, image("a"))
    close(puller.use(cache, image("b")))
    assert names(folder) == ["a" * 64 + ".sif", "b" * 64 + ".sif"]
    close(used)
    close(puller.use(cache, image("c")))
    assert names(folder) == ["c" * 64 + ".sif"]
