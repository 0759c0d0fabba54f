"""Reading any file of a user with a real shell: what is in its place, links, and odd names."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.log_commands import piece_parse
from portal.core.jobs.output import FilePiece, FileState
from portal.errors import Unavailable
from tests.support.transports import ReplayTransport, ShellTransport

NOBODY = 65534


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "alice"
    home.mkdir()
    return home


@pytest.fixture
def files(home: Path) -> HomeFiles:
    return HomeFiles(ShellTransport(home), ".slipway", "storage")


def test_pieces_of_a_file(files: HomeFiles, home: Path) -> None:
    file = home / "slurm-7.out"
    file.write_bytes(bytes(range(256)) * 1000)
    path, size = str(file), 256_000

    def read(offset: int | None, limit: int) -> FilePiece:
        return files.read_file("alice", path, offset, limit)

    assert read(3, 5) == FilePiece(b"\x03\x04\x05\x06\x07", 3, size)
    assert read(None, 4) == FilePiece(b"\xfc\xfd\xfe\xff", size - 4, size)
    assert read(size, 9) == FilePiece(b"", size, size)
    assert read(0, 0) == FilePiece(b"", 0, size)
    assert read(None, 0) == FilePiece(b"", size, size)
    whole = read(None, 1 << 20)
    assert (whole.offset, len(whole.data)) == (0, size)


def test_a_file_that_became_shorter_is_read_from_its_beginning(
    files: HomeFiles, home: Path
) -> None:
    """A job that was requeued writes its output anew."""
    file = home / "out"
    file.write_text("again")
    assert files.read_file("alice", str(file), 4000, 10) == FilePiece(b"again", 0, 5)
    file.write_text("")
    assert files.read_file("alice", str(file), 2**62, 10) == FilePiece(b"", 0, 0)


@pytest.mark.parametrize(
    "name",
    [
        "two words", "it's", 'a "b" $HOME `id` $(id)', "line\nbreak", "-rf", "tab\there", "größe",
        "back\\slash", "*", "semi;colon & more", "\x1b[31mred", "if=of",
    ],
)  # fmt: skip
def test_names_are_not_interpreted(files: HomeFiles, home: Path, name: str) -> None:
    (home / name).write_text(f"in {name}")
    found = files.read_file("alice", str(home / name), None, 100)
    assert found.data.decode() == f"in {name}"


def test_links_lead_to_regular_files(files: HomeFiles, home: Path) -> None:
    (home / "runs").mkdir()
    (home / "runs" / "7.out").write_text("done")
    (home / "latest").symlink_to("runs")
    (home / "out").symlink_to("latest/7.out")
    assert files.read_file("alice", str(home / "out"), None, 10).data == b"done"


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("fifo", FileState.SPECIAL),
        ("zero", FileState.SPECIAL),
        ("link to zero", FileState.SPECIAL),
        ("folder", FileState.FOLDER),
        ("link to folder", FileState.FOLDER),
        ("nothing", FileState.MISSING),
        ("dangling link", FileState.MISSING),
        ("link to itself", FileState.UNREADABLE),
        ("below a file", FileState.UNREADABLE),
    ],
)
def test_what_is_no_file_is_not_opened(
    files: HomeFiles, home: Path, kind: str, state: FileState
) -> None:
    place = home / "out"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "zero":
            place = Path("/dev/zero")
        case "folder":
            place.mkdir()
        case "below a file":
            place.write_text("")
            place /= "more"
        case "nothing":
            pass
        case _:
            to = {"zero": "/dev/zero", "folder": "/tmp", "itself": "out"}
            place.symlink_to(to.get(kind.rpartition(" ")[2], "/nowhere/at/all"))
    begun = time.monotonic()
    for offset in (None, 0, 5):
        found = files.read_file("alice", str(place), offset, 10)
        assert (found.state, found.data, found.size) == (state, b"", 0)
    assert time.monotonic() - begun < 5


def test_a_fifo_that_takes_the_place_of_the_file_does_not_block(home: Path) -> None:
    """The check has passed when the file is replaced: dd opens whatever is there then."""
    file = home / "out"

    class Replacing(ShellTransport):
        def changed(self, words: list[str]) -> list[str]:
            swap = 'rm -f "$1"; mkfifo "$1"\nexec dd'
            return [word.replace("exec dd", swap) for word in words]

    file.write_text("a file at first")
    begun = time.monotonic()
    found = HomeFiles(Replacing(home), ".slipway", "storage").read_file("a", str(file), 0, 100)
    assert (found.data, file.is_fifo()) == (b"", True)
    assert time.monotonic() - begun < 5


class ShellOfNobody(ShellTransport):
    """Commands run as a user who may read nothing of root's."""

    account = NOBODY


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_a_link_to_another_users_file_is_followed_only_as_the_user_may(open_folder: Path) -> None:
    theirs = open_folder / "theirs"
    theirs.write_text("of bob")
    theirs.chmod(0o600)
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / "out").write_text("of bob")
    (open_folder / "link").symlink_to("theirs")
    (open_folder / "into").symlink_to("closed/out")
    files = HomeFiles(ShellOfNobody(open_folder), ".slipway", "storage")
    for name in ("theirs", "link", "into", "closed/out"):
        found = files.read_file("alice", str(open_folder / name), None, 100)
        assert found == FilePiece(state=FileState.UNREADABLE, why="Permission denied"), name
    theirs.chmod(0o644)
    assert files.read_file("alice", str(open_folder / "link"), None, 100).data == b"of bob"


@pytest.mark.parametrize(
    "printed",
    [b"", b"12", b"12 3", b"-1 0\nx", b"1 2 3\nx", b"9" * 19 + b" 0\nx", b"motd\n12 0\nx"],
)
def test_an_answer_that_the_command_does_not_print_is_no_answer(printed: bytes) -> None:
    assert (piece_parse(Completed(0, printed, ""), 5) is None) == (printed != b"12 3")


def test_an_endless_answer_is_cut() -> None:
    done = Completed(0, b"9 0\n" + b"x" * 5000, "")
    assert piece_parse(done, 5) == FilePiece(b"xxxxx", 0, 9)


@pytest.mark.parametrize(("code", "words"), [(124, "in time"), (137, "in time"), (1, "no home")])
def test_a_file_that_cannot_be_read_now(code: int, words: str) -> None:
    failing = ReplayTransport(Completed(code, b"", "sh: no home"))
    with pytest.raises(Unavailable, match=words):
        HomeFiles(failing, ".slipway", "storage").read_file("alice", "/x", 0, 10)
