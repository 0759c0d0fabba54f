"""Ordinary archives: formats, names, attributes, and where their folder appears."""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.errors import Refused
from portal.node.file_server.operations import archive_formats
from portal.node.file_server.operations.unpacking import reading
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.operations.conftest import Operate, as_ordinary_user
from tests.unit.node.file_server.operations.unpacking.conftest import (
    HOUR,
    Unpack,
    info,
    make_tar,
    make_zip,
    problems,
    tree,
)

MODES = {".tar": "w", ".tar.gz": "w:gz", ".TGZ": "w:gz", ".tbz2": "w:bz2", ".tar.xz": "w:xz"}


@pytest.mark.parametrize("ending", MODES)
def test_tar(unpack: Unpack, home: Path, ending: str) -> None:
    make_tar(
        home / f"my data{ending}",
        (info("a", tarfile.DIRTYPE, mode=0o750), b""),
        (info("a/x.txt", mode=0o640), b"hello"),
        (info("./b/run", mode=0o755), b"#!/bin/sh"),
        (info("link", tarfile.SYMTYPE, linkname="a/x.txt"), b""),
        (info("again", tarfile.LNKTYPE, linkname="a/x.txt"), b""),
        mode=MODES[ending],
    )
    found = unpack(f"my%20data{ending}")
    assert (found["state"], found["files"], found["problem_count"]) == ("done", 4, 0)
    assert found["detail"] == "4 files unpacked."
    folder = home / "my data"
    assert tree(folder) == {
        "a/x.txt": "hello",
        "b/run": "#!/bin/sh",
        "link": "-> a/x.txt",
        "again": "hello",
    }
    assert (folder / "a/x.txt").samefile(folder / "again")
    modes = {name: (folder / name).lstat().st_mode & 0o7777 for name in ("a", "a/x.txt", "b/run")}
    assert modes == {"a": 0o750, "a/x.txt": 0o640, "b/run": 0o755}
    for name in ("a", "a/x.txt", "link"):
        assert (folder / name).lstat().st_mtime == HOUR
    assert list(home.rglob(".slipway-*")) == []


def test_zst(unpack: Unpack, home: Path) -> None:
    make_tar(home / "a.tar", (info("x"), b"hello" * 100_000))
    subprocess.run(["zstd", "-q", "--rm", home / "a.tar"], check=True)
    assert unpack("a.tar.zst")["state"] == "done"
    assert (home / "a/x").stat().st_size == 500_000
    data = (home / "a.tar.zst").read_bytes()
    (home / "b.tar.zst").write_bytes(data[:-10])
    assert unpack("b.tar.zst")["state"] == "failed"
    assert not (home / "b").exists()


def test_zst_without_its_program_is_refused(
    operate: Operate, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(archive_formats.ENVIRONMENT, "PATH", "/nowhere")
    monkeypatch.setattr(archive_formats, "has_zstd_module", lambda: False)
    (home / "a.tar.zst").write_bytes(b"x")
    with pytest.raises(Refused, match="neither the program zstd") as found:
        operate("unpack", ["home/a.tar.zst"])
    assert (found.value.code, found.value.field) == ("format", "items")


def test_zip(unpack: Unpack, home: Path) -> None:
    with zipfile.ZipFile(home / "a.zip", "w") as archive:
        archive.mkdir("a", 0o750)
        for name, method in (("stored", 0), ("deflated", 8), ("bzip2", 12)):
            header = zipfile.ZipInfo(f"a/{name}", (2020, 5, 6, 7, 8, 10))
            header.external_attr = 0o640 << 16
            archive.writestr(header, name * 1000, method)
        header = zipfile.ZipInfo("link")
        header.external_attr = 0o120777 << 16
        archive.writestr(header, "a/stored")
        header = zipfile.ZipInfo("from windows.txt")
        header.create_system = 0
        archive.writestr(header, "x")
        archive.comment = b"a comment"
    found = unpack("a.zip")
    assert (found["state"], found["problem_count"]) == ("done", 0)
    assert found["bytes"] == found["bytes_total"] - len("a/stored")
    folder = home / "a"
    assert tree(folder) == {
        "a/stored": "stored" * 1000,
        "a/deflated": "deflated" * 1000,
        "a/bzip2": "bzip2" * 1000,
        "link": "-> a/stored",
        "from windows.txt": "x",
    }
    assert (folder / "a").stat().st_mode & 0o777 == 0o750
    assert (folder / "a/stored").stat().st_mode & 0o777 == 0o640
    umask = os.umask(0)
    os.umask(umask)
    assert (folder / "from windows.txt").stat().st_mode & 0o777 == 0o666 & ~umask
    assert os.stat(folder / "a/stored").st_mtime % 60 == 10


def test_a_zip_of_what_came_through_a_pipe(unpack: Unpack, home: Path) -> None:
    subprocess.run("echo hello | zip -q a.zip -", shell=True, cwd=home, check=True)
    assert unpack("a.zip")["problem_count"] == 0
    assert tree(home / "a") == {"-": "hello\n"}


def test_a_large_zip(unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the records for large files, and after something else, as in programs that unpack."""
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    with open(home / "a.zip", "wb") as file:
        file.write(b"#!/bin/sh\n" * 10)
        with zipfile.ZipFile(file, "w") as archive:
            for number in range(5):
                archive.writestr(str(number), str(number) * 200)
    assert unpack("a.zip")["state"] == "done"
    assert tree(home / "a") == {str(number): str(number) * 200 for number in range(5)}


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_what_is_packed_here_is_unpacked_here(
    unpack: Unpack, data: Client, home: Path, kind: str
) -> None:
    folder = home / "storage/data"
    (folder / "ä b").mkdir()
    (folder / "ä b/größe.txt").write_text("ü")
    (folder / "run").write_text("#!/bin/sh")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("ä b/größe.txt")
    os.utime(folder / "run", (HOUR, HOUR))
    found = data("GET", f"/data/archive/home/storage/data?format={kind}")
    (home / f"data.{kind}").write_bytes(found.body)
    assert unpack(f"data.{kind}")["problem_count"] == 0
    assert tree(home / "data") == tree(folder)  # not data/data
    assert (home / "data/run").stat().st_mode & 0o777 == 0o755
    assert abs((home / "data/run").stat().st_mtime - HOUR) < 2


def test_a_zip_of_a_program_that_adds_times_and_names(unpack: Unpack, home: Path) -> None:
    header = zipfile.ZipInfo("gr?.txt")
    times = b"\x55\x54\x05\x00\x01" + HOUR.to_bytes(4, "little")
    name = "größe.txt".encode()
    path = b"\1" + (0).to_bytes(4, "little") + name
    header.extra = times + b"\x75\x70" + len(path).to_bytes(2, "little") + path
    with zipfile.ZipFile(home / "a.zip", "w") as archive:
        archive.writestr(header, "x")
    unpack("a.zip")
    assert tree(home / "a") == {"gr?.txt": "x"}  # that name was for another one
    assert (home / "a/gr?.txt").stat().st_mtime == HOUR
    data = (home / "a.zip").read_bytes()
    right = zipfile.crc32(b"gr?.txt").to_bytes(4, "little")  # type: ignore[attr-defined]
    (home / "b.zip").write_bytes(data.replace(b"\1\0\0\0\0" + name, b"\1" + right + name))
    unpack("b.zip")
    assert tree(home / "b") == {"größe.txt": "x"}


@pytest.mark.parametrize(
    ("raw", "system", "name"),
    [
        ("größe.txt".encode(), 3, "größe.txt"),
        ("größe.txt".encode("cp437"), 0, "größe.txt"),
        ("größe.txt".encode("cp437"), 3, "größe.txt"),
        (b"folder\\x.txt", 0, "folder/x.txt"),
        (b"odd\\x.txt", 3, "odd\\x.txt"),
        (b"data\\.txt", 3, "data\\.txt"),
    ],
)
def test_names_of_zip_files_in_other_encodings(
    unpack: Unpack, home: Path, raw: bytes, system: int, name: str
) -> None:
    header = zipfile.ZipInfo("x" * len(raw))
    header.create_system = system
    with zipfile.ZipFile(home / "a.zip", "w") as archive:
        archive.writestr(header, "text")
    data = (home / "a.zip").read_bytes().replace(b"x" * len(raw), raw)
    (home / "a.zip").write_bytes(data)
    assert unpack("a.zip")["problem_count"] == 0
    assert tree(home / "a") == {name: "text"}


def test_names_of_tar_files_in_any_encoding(unpack: Unpack, home: Path) -> None:
    names = [b"latin-\xe4", "größe 데이터".encode(), b"line\nbreak", b"x" * 200 + b"/" + b"y" * 250]
    with tarfile.open(home / "a.tar", "w", errors="surrogateescape") as tar:
        for name in names:
            tar.addfile(info(os.fsdecode(name)))
    assert unpack("a.tar")["problem_count"] == 0
    found = {os.fsencode(name) for name in tree(home / "a")}
    assert found == set(names)


def test_files_with_holes(unpack: Unpack, home: Path) -> None:
    with open(home / "sparse", "wb") as file:
        file.seek(50_000_000)
        file.write(b"end")
        file.truncate(60_000_000)
    for format in ("gnu", "pax"):
        name = home / f"{format}.tar"
        command = ["tar", "--sparse", f"--format={format}", "-C", str(home), "-cf", str(name)]
        subprocess.run([*command, "sparse"], check=True)
        assert unpack(f"{format}.tar")["problem_count"] == 0
        made = home / format / "sparse"
        assert made.read_bytes() == (home / "sparse").read_bytes()
        assert made.stat().st_blocks * 512 < 10_000_000


def test_where_the_folder_appears(unpack: Unpack, home: Path) -> None:
    make_zip(home / "storage/data/a.b.zip", x="1")
    found = unpack("storage/data/a.b.zip")
    assert found["to"] == "home/storage/data"
    assert tree(home / "storage/data/a.b") == {"x": "1"}
    unpack("storage/data/a.b.zip", "home/storage")
    assert tree(home / "storage/a.b") == {"x": "1"}
    unpack("storage/data/a.b.zip", "scratch")


def test_a_name_that_exists(unpack: Unpack, home: Path) -> None:
    make_zip(home / "a.zip", x="1")
    (home / "a").mkdir()
    (home / "a/old").write_text("old")
    with pytest.raises(Refused, match="has “a” already") as found:
        unpack("a.zip")
    assert (found.value.code, found.value.field) == ("exists", "on_conflict")
    assert unpack("a.zip", on_conflict="skip")["skipped"] == 1
    unpack("a.zip", on_conflict="rename")
    assert (tree(home / "a"), tree(home / "a (2)")) == ({"old": "old"}, {"x": "1"})
    unpack("a.zip", on_conflict="replace")
    assert tree(home / "a") == {"x": "1"}
    make_zip(home / "x.zip", **{"x/y": "1"})
    (home / "x").mkdir()
    unpack("x.zip", on_conflict="rename")
    assert tree(home / "x (2)") == {"y": "1"}
    assert list(home.rglob(".slipway-*")) == []


def test_several(operate: Operate, home: Path) -> None:
    make_zip(home / "a.zip", x="1")
    make_tar(home / "b.tgz", (info("y"), b"2"), mode="w:gz")
    (home / "c.zip").write_text("no zip file")
    found = operate("unpack", ["home/a.zip", "home/b.tgz", "home/c.zip"])
    assert (found["state"], found["files"]) == ("done", 2)
    assert list(problems(found)) == ["c.zip"]
    assert (tree(home / "a"), tree(home / "b")) == ({"x": "1"}, {"y": "2"})
    make_zip(home / "storage/a.zip", x="1")
    with pytest.raises(Refused) as refused:
        operate("unpack", ["home/a.zip", "home/storage/a.zip"])
    assert (refused.value.status, refused.value.field) == (422, "to")


@pytest.mark.parametrize(
    ("name", "code"),
    [("text.txt", "format"), ("x.gz", "format"), ("folder.zip", "special"), ("l.zip", "special")],
)
def test_what_is_no_archive(unpack: Unpack, home: Path, name: str, code: str) -> None:
    (home / "text.txt").write_text("x")
    (home / "x.gz").write_text("x")
    (home / "folder.zip").mkdir()
    (home / "l.zip").symlink_to("text.txt")
    with pytest.raises(Refused) as found:
        unpack(name)
    assert (found.value.code, found.value.field) == (code, "items")


def test_an_empty_archive(unpack: Unpack, home: Path) -> None:
    make_zip(home / "a.zip")
    make_tar(home / "b.tar")
    for name in ("a.zip", "b.tar"):
        assert unpack(name)["state"] == "done"
        assert list((home / name[0]).iterdir()) == []


ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, bits, number & 0xFFFFFFFF)
    for tag, bits, number in ((1, 7, -1), (2, 7, 4712), (4, 7, -1), (16, 7, -1), (32, 0, -1))
)
"""rwxrwx---, and one more user with as much."""


def test_the_destination_decides_on_group_and_access(home: Path, operate: Operate) -> None:
    make_zip(home / "a.zip", **{"x/y": "1"})
    make_tar(
        home / "b.tar",
        (info("x", tarfile.DIRTYPE, mode=0o6777), b""),
        (info("x/y", mode=0o6777), b""),
    )
    folder = home / "shared"
    folder.mkdir()
    os.chown(folder, -1, 4711)
    folder.chmod(0o2770)
    os.setxattr(folder, "system.posix_acl_default", ACL)
    for name in ("a.zip", "b.tar"):
        operate("unpack", [f"home/{name}"], "home/shared")
    for path in (folder / "a", folder / "a/x", folder / "b", folder / "b/x"):
        assert (path.stat().st_gid, path.stat().st_mode & 0o7000) == (4711, 0o2000), path
        assert path.stat().st_mode & 0o007 == 0
    for path in (folder / "a/x/y", folder / "b/x/y"):
        assert (path.stat().st_gid, path.stat().st_mode & 0o7007) == (4711, 0), path
        assert struct.pack("<HHI", 2, 7, 4712) in os.getxattr(path, "system.posix_acl_access")


def test_as_an_ordinary_user(open_folder: Path) -> None:
    make_tar(
        open_folder / "a.tar",
        (info("closed", tarfile.DIRTYPE, mode=0o500), b""),
        (info("closed/x", mode=0o400), b"1"),
        (info("closed/deep/y", mode=0), b"2"),
        (info("device", tarfile.CHRTYPE), b""),
    )
    os.chmod(open_folder / "a.tar", 0o644)
    (found,) = as_ordinary_user(
        open_folder, [{"kind": "unpack", "items": ["home/a.tar"], "on_conflict": "rename"}]
    )
    assert list(problems(found)) == ["device"]
    assert (found["state"], found["files"]) == ("done", 2)
    assert (open_folder / "a/closed").stat().st_mode & 0o777 == 0o500


def test_it_can_be_cancelled(control: Client, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going = threading.Event()
    read = reading.ArchiveFile.at

    def slowly(self: reading.ArchiveFile, *place: int) -> bytes:
        going.wait(0.02)
        return read(self, *place)

    monkeypatch.setattr(reading.ArchiveFile, "at", slowly)
    make_zip(home / "a.zip", **{str(number): "x" for number in range(500)})
    found = control("POST", "/v1/operations", {"kind": "unpack", "items": ["home/a.zip"]})
    assert (found.status, found.json["kind"], found.json["state"]) == (202, "unpack", "running")
    found = control("DELETE", f"/v1/operations/{found.json['id']}")
    going.set()
    assert found.json["state"] == "cancelled"
    assert sorted(path.name for path in home.iterdir()) == [".slipway", "a.zip", "storage"]


def test_an_archive_that_changes_is_not_unpacked(
    unpack: Unpack, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_zip(home / "a.zip", x="1")
    check = reading.ArchiveFile.check_unchanged

    def change(self: reading.ArchiveFile) -> None:
        os.utime(home / "a.zip", (1, 1))
        check(self)

    monkeypatch.setattr(reading.ArchiveFile, "check_unchanged", change)
    found = unpack("a.zip")
    assert (found["state"], found["files"]) == ("failed", 0)
    assert "changed while it was unpacked" in found["problems"][0]["detail"]
    assert not (home / "a").exists()


Damage = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: b"x" * 2000,
        lambda data: data[: len(data) // 2] + b"\xff" * 40 + data[len(data) // 2 + 40 :],
    ],
    ids=["half", "but one byte", "nothing", "something else", "changed"],
)
@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"])
def test_a_damaged_archive_leaves_nothing(
    unpack: Unpack, home: Path, damage: Damage, ending: str
) -> None:
    path = home / f"a.{ending}"
    texts = [os.urandom(20_000) for _ in range(3)]
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for number, text in enumerate(texts):
                archive.writestr(str(number), text)
    else:
        members = [(info(str(number)), text) for number, text in enumerate(texts)]
        make_tar(home / "a.tar", *members)
        programs: dict[str, str] = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
        if program := programs.get(ending[4:]):
            subprocess.run([program, "-q", home / "a.tar"], check=True)
    data = damage(path.read_bytes())
    path.write_bytes(data)
    if ending == "tar" and len(data) > 60_000:  # without checksums, and with a long end
        return
    found = unpack(path.name)
    assert (found["state"], found["files"]) == ("failed", 0), found
    assert "It is damaged" in found["problems"][0]["detail"]
    assert not (home / "a").exists()
    assert list(home.rglob(".slipway-*")) == []


def test_a_tar_file_without_an_end_is_said(unpack: Unpack, home: Path) -> None:
    make_tar(home / "a.tar", (info("x"), b"1"), (info("y"), b"2"))
    (home / "a.tar").write_bytes((home / "a.tar").read_bytes()[:1024])
    found = unpack("a.tar")
    assert problems(found) == {"a.tar": "Its end is missing, and perhaps some of its contents."}
    assert tree(home / "a") == {"x": "1"}


def test_the_documented_program_is_known() -> None:
    assert archive_formats.has_zstd_module() == (
        importlib.util.find_spec("compression") is not None
    )
    found: Any = archive_formats.folder_name(b".zip")
    assert found == b"archive"
