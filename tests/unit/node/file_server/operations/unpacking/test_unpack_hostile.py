"""Archives that are made to harm, and kills of the process in between."""

from __future__ import annotations

import io
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
import zlib
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from portal.node.file_server.operations.unpacking import limits, tars
from tests.unit.node.file_server.operations.conftest import operations_of
from tests.unit.node.file_server.operations.unpacking.conftest import (
    Unpack,
    info,
    make_tar,
    make_zip,
    problems,
    tree,
)
from tests.unit.node.file_server.uploads.conftest import small_disk

__all__ = ["small_disk"]


def failed(found: dict[str, Any], words: str) -> None:
    """The archive was refused as a whole, and left nothing."""
    assert (found["state"], found["files"]) == ("failed", 0), found
    reasons = [problem["detail"] for problem in found["problems"]] or [found["detail"]]
    assert [words in reason for reason in reasons] == [True]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_out(unpack: Unpack, home: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    names = [
        str(out),
        "../out",
        "a/../../out",
        "a/..",
        "../../../../../../../../../../../../tmp/slipway-out",
        "x" * 256,
        ("y" * 200 + "/") * 25 + "y",
        "a/.slipway-0123456789abcdef",
        "good",
    ]
    if kind == "zip":
        make_zip(home / "a.zip", **dict.fromkeys(names, "x"))
    else:
        make_tar(home / "a.tar", *((info(name), b"x") for name in names))
    found = unpack(f"a.{kind}")
    assert found["problem_count"] == len(names) - 2
    assert tree(home / "a") == {"good": "x", str(out)[1:]: "x"}
    assert not out.exists()
    assert not (home / "out").exists()
    assert not Path("/tmp/slipway-out").exists()


def test_names_with_a_zero_byte(unpack: Unpack, home: Path) -> None:
    make_zip(home / "a.zip", **{"a|b": "x", "good": "x"})
    (home / "a.zip").write_bytes((home / "a.zip").read_bytes().replace(b"a|b", b"a\0b"))
    assert unpack("a.zip")["problem_count"] == 1
    assert tree(home / "a") == {"good": "x"}


LINKS = {
    "absolute": "/etc/passwd",
    "above": "..",
    "far": "../../../../etc",
    "deep/above": "../..",
    "deep/round": "../deep/../..",
    "empty": "",
    "zero": "a\0b",
}
GOOD_LINKS = {"deep/top": "..", "deep/file": "../file", "loose": "not/there"}


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_links_that_lead_out(unpack: Unpack, home: Path, kind: str) -> None:
    links = {**LINKS, **GOOD_LINKS}
    if kind == "zip":
        with zipfile.ZipFile(home / "a.zip", "w") as archive:
            for name, target in links.items():
                header = zipfile.ZipInfo(name)
                header.external_attr = 0o120777 << 16
                archive.writestr(header, target)
    else:
        del links["zero"]  # headers of tar files cannot have that
        members = [(info(n, tarfile.SYMTYPE, linkname=t), b"") for n, t in links.items()]
        make_tar(home / "a.tar", *members)
    found = unpack(f"a.{kind}")
    assert found["problem_count"] == len(links) - len(GOOD_LINKS)
    assert tree(home / "a") == {name: f"-> {target}" for name, target in GOOD_LINKS.items()}


def test_files_through_links(unpack: Unpack, home: Path) -> None:
    (home / "victim").mkdir()
    make_tar(
        home / "a.tar",
        (info("inside", tarfile.DIRTYPE), b""),
        (info("link", tarfile.SYMTYPE, linkname="inside"), b""),
        (info("link/x"), b"1"),
        (info("inside/up", tarfile.SYMTYPE, linkname=".."), b""),
        (info("inside/up/y"), b"1"),
        (info("link", tarfile.DIRTYPE), b""),
        (info("file"), b"2"),
        (info("file/z"), b"3"),
    )
    found = unpack("a.tar")
    words = "is not a folder. It was left out."
    assert {name for name, detail in problems(found).items() if words in detail} == set("xyz") | {
        "link"
    }
    assert tree(home / "a") == {"link": "-> inside", "inside/up": "-> ..", "file": "2"}


def test_a_file_over_a_link_replaces_the_link(unpack: Unpack, home: Path) -> None:
    (home / "a.tar").parent.joinpath("victim").write_text("mine")
    make_tar(
        home / "a.tar",
        (info("real"), b"1"),
        (info("x", tarfile.SYMTYPE, linkname="real"), b""),
        (info("x"), b"2"),
    )
    found = unpack("a.tar")
    assert problems(found) == {"x": "It is in the archive more than once; the last counts."}
    assert tree(home / "a") == {"real": "1", "x": "2"}


def test_hard_links_that_lead_out(unpack: Unpack, home: Path) -> None:
    (home / "secret").write_text("mine")
    targets = ["../secret", str(home / "secret"), "/etc/passwd", "later", "folder", "link", ""]
    make_tar(
        home / "a.tar",
        (info("folder", tarfile.DIRTYPE), b""),
        (info("link", tarfile.SYMTYPE, linkname="folder"), b""),
        *(
            (info(f"h{number}", tarfile.LNKTYPE, linkname=target), b"")
            for number, target in enumerate(targets)
        ),
        (info("later"), b"1"),
    )
    found = unpack("a.tar")
    assert set(problems(found)) == {f"h{number}" for number in range(len(targets))}
    assert tree(home / "a") == {"link": "-> folder", "later": "1"}
    assert (home / "secret").stat().st_nlink == 1


def test_a_hard_link_is_not_written_through(unpack: Unpack, home: Path) -> None:
    make_tar(
        home / "a.tar",
        (info("x"), b"first"),
        (info("y", tarfile.LNKTYPE, linkname="x"), b""),
        (info("y"), b"second"),
    )
    unpack("a.tar")
    assert tree(home / "a") == {"x": "first", "y": "second"}


def test_devices_pipes_and_special_bits(unpack: Unpack, home: Path) -> None:
    make_tar(
        home / "a.tar",
        (info("disk", tarfile.BLKTYPE, devmajor=8), b""),
        (info("tty", tarfile.CHRTYPE, devmajor=5), b""),
        (info("pipe", tarfile.FIFOTYPE), b""),
        (info("odd", b"Z"), b"x"),
        (info("root", mode=0o6755, uid=0, uname="root"), b"x"),
        (info("d", tarfile.DIRTYPE, mode=0o7777), b""),
    )
    found = unpack("a.tar")
    assert set(problems(found)) == {"disk", "tty", "pipe", "odd"}
    assert {path.name for path in (home / "a").iterdir()} == {"root", "d"}
    assert (home / "a/root").stat().st_mode & 0o7777 == 0o755
    assert (home / "a/d").stat().st_mode & 0o7000 == 0


def test_what_is_there_twice(unpack: Unpack, home: Path) -> None:
    with zipfile.ZipFile(home / "a.zip", "w") as archive:
        for name, text in (("x", "1"), ("w", "2"), ("d/y", "3"), ("d", "4")):
            archive.writestr(name, text)
    (home / "a.zip").write_bytes((home / "a.zip").read_bytes().replace(b"w", b"x"))
    found = unpack("a.zip")
    assert set(problems(found)) == {"x", "d"}
    assert (tree(home / "a"), found["files"]) == ({"x": "2", "d/y": "3"}, 2)


def test_an_encrypted_zip_file(unpack: Unpack, home: Path) -> None:
    make_zip(home / "a.zip", x="1")
    data = bytearray((home / "a.zip").read_bytes())
    data[data.rfind(b"PK\1\2") + 8] |= 1
    (home / "a.zip").write_bytes(data)
    failed(unpack("a.zip"), "It is encrypted.")


def test_an_unknown_method(unpack: Unpack, home: Path) -> None:
    with zipfile.ZipFile(home / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x", "1")
    failed(unpack("a.zip"), "LZMA, which is not known here")


def test_a_zip_file_that_says_less_than_it_has(unpack: Unpack, home: Path) -> None:
    make_zip(home / "a.zip", x="x" * 1_000_000)
    data = bytearray((home / "a.zip").read_bytes())
    place = data.rfind(b"PK\1\2") + 24
    data[place : place + 4] = struct.pack("<L", 1000)
    (home / "a.zip").write_bytes(data)
    failed(unpack("a.zip"), "It is damaged")
    assert not (home / "a").exists()


def test_entries_that_share_their_data(unpack: Unpack, home: Path) -> None:
    packed = zlib.compress(bytes(1_000_000), 9)[2:-4]
    crc = zlib.crc32(bytes(1_000_000))
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(packed), 1_000_000, 1, 0)
    table = b"".join(
        struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, len(packed), 1_000_000, 4, 0, 0, 0,
            0, 0, 0,
        )
        + b"%04d" % number
        for number in range(100)
    )  # fmt: skip
    start = local + b"x" + packed
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 100, 100, len(table), len(start), 0)
    (home / "a.zip").write_bytes(start + table + end)
    failed(unpack("a.zip"), "It is damaged")


@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz"])
def test_a_bomb(unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(limits, "SMALL", 1_000_000)
    monkeypatch.setattr(limits, "MOST_RATIO", 100)
    if ending == "zip":
        make_zip(home / "a.zip", x="x" * 2_000_000)
    else:
        mode = f"w:{ending[4:]}"
        make_tar(home / f"a.{ending}", (info("x"), b"x" * 2_000_000), mode=mode)
    failed(unpack(f"a.{ending}"), "more than 100 times as large")
    make_tar(home / "b.tar.gz", (info("x"), os.urandom(2_000_000)), mode="w:gz")
    assert unpack("b.tar.gz")["state"] == "done"


def test_zeros_after_the_end(unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tars, "MOST_PADDING", 1_000_000)
    make_tar(home / "a.tar", (info("x"), b"1"))
    with open(home / "a.tar", "ab") as file:
        file.write(bytes(2_000_000))
    subprocess.run(["gzip", home / "a.tar"], check=True)
    failed(unpack("a.tar.gz"), "It is damaged")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_too_many_entries(
    unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(limits, "MOST_ENTRIES", 10)
    names = [str(number) for number in range(11)]
    if kind == "zip":
        make_zip(home / "a.zip", **dict.fromkeys(names, ""))
    else:
        make_tar(home / "a.tar", *((info(name, tarfile.DIRTYPE), b"") for name in names))
    failed(unpack(f"a.{kind}"), "more than 10 entries")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_more_than_is_free(small_disk: Path, unpack: Unpack, home: Path, kind: str) -> None:
    data = os.urandom(3_000_000)
    if kind == "zip":
        make_zip(home / "a.zip", x=data.hex(), y="1")
    else:
        make_tar(home / "a.tar", (info("y"), b"1"), (info("x"), data * 2))
    failed(unpack(f"a.{kind}", "home/storage/data"), "bytes that are free")
    assert list(small_disk.iterdir()) == []


def raw_tar(*blocks: tuple[bytes, bytes]) -> bytes:
    """A tar file of headers of these types with these data."""
    out = io.BytesIO()
    for type, data in blocks:
        header = info("x", type)
        header.size = len(data)
        out.write(header.tobuf(tarfile.USTAR_FORMAT))
        out.write(data + bytes(-len(data) % 512))
    return out.getvalue() + bytes(1024)


@pytest.mark.parametrize("type", [b"x", b"g", b"L", b"K"])
def test_headers_that_are_too_large(unpack: Unpack, home: Path, type: bytes) -> None:
    (home / "a.tar").write_bytes(raw_tar((type, b"a" * 2_000_000), (b"0", b"1")))
    failed(unpack("a.tar"), "a header that is too large")


def test_many_headers(unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tars, "MOST_GLOBAL", 1000)
    record = b"30 comment=xxxxxxxxxxxxxxxxxx\n"
    assert len(record) == 30
    (home / "a.tar").write_bytes(raw_tar(*[(b"g", record), (b"0", b"1")] * 50))
    failed(unpack("a.tar"), "a header that is too large")
    (home / "b.tar").write_bytes(raw_tar(*[(b"x", record)] * 5000, (b"0", b"1")))
    failed(unpack("b.tar"), "It is damaged")


def test_times_that_no_file_system_has(unpack: Unpack, home: Path) -> None:
    headers = {"nan": "nan", "late": "1e30", "early": "-1e30", "old": "-5"}
    members = [(info(name, pax_headers={"mtime": text}), b"x") for name, text in headers.items()]
    make_tar(home / "a.tar", *members)
    assert unpack("a.tar")["problem_count"] == 0
    assert sorted(tree(home / "a")) == sorted(headers)


def test_a_deep_tree(unpack: Unpack, home: Path) -> None:
    path = "/".join(["d"] * 1000)
    make_tar(
        home / "a.tar", (info(f"{path}/x"), b"1"), (info("y"), b"2"), (info(f"{path}/z"), b"3")
    )
    found = unpack("a.tar")
    assert (found["state"], found["files"], found["problem_count"]) == ("done", 3, 0)


LINES = "unpack.py", "placing.py", "renames.py", "attributes.py"


def killed_after(lines: int, roots: dict[str, str], order: dict[str, Any]) -> bool:
    """Unpack in another process that ends at its n-th line; returns whether it got so far."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    left = lines

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(LINES):
            return None
        left -= event == "line"
        if left < 0:
            os._exit(9)
        return trace

    operations = operations_of(roots)
    threading.settrace(trace)
    operations.start(order).over.wait(20)
    sys.settrace(None)
    os._exit(0)


def has_part(home: Path) -> bool:
    return any(name.startswith(".slipway-") for name in os.listdir(home))


def test_killed_while_unpacking(home: Path) -> None:
    roots = {"home": str(home)}
    make_tar(home / "a.tar", (info("d/x"), b"1"), (info("y"), b"2"))
    order = {"kind": "unpack", "items": ["home/a.tar"], "on_conflict": "replace"}
    lines = 0
    alive = True
    while alive:
        (home / "a").mkdir()
        (home / "a/old").write_text("0")
        alive = killed_after(lines, roots, order)
        operations_of(roots)
        deadline = time.monotonic() + 10
        while has_part(home):
            assert time.monotonic() < deadline, lines
            time.sleep(0.005)
        assert tree(home / "a") in ({"old": "0"}, {"d/x": "1", "y": "2"}), lines
        shutil.rmtree(home / "a")
        lines += 1
    assert lines > 100
