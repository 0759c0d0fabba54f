"""Archives of folders, unpacked again."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.file_server.archives import sources
from tests.unit.node.file_server.conftest import Answer, Client


def make_tree(folder: Path) -> None:
    (folder / "deep" / "empty").mkdir(parents=True)
    (folder / "a.txt").write_text("a" * 1000)
    (folder / "a.txt").chmod(0o640)
    os.utime(folder / "a.txt", (1_600_000_000, 1_600_000_000))
    (folder / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "deep" / "run.sh").chmod(0o755)
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "etc").symlink_to("/etc")
    (folder / ".slipway-1").write_text("incomplete")


def opened_zip(answer: Answer) -> zipfile.ZipFile:
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/zip")
    return zipfile.ZipFile(io.BytesIO(answer.body))


def opened_tar(answer: Answer) -> tarfile.TarFile:
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-tar")
    return tarfile.open(fileobj=io.BytesIO(answer.body), encoding="utf-8", errors="surrogateescape")


NAMES = [
    "work/",
    "work/.hidden",
    "work/a.txt",
    "work/deep/",
    "work/deep/empty/",
    "work/deep/run.sh",
    "work/etc",
    "work/passwd",
]


def test_a_folder_as_zip_has_links_as_links(data: Client, home: Path) -> None:
    make_tree(home / "work")
    (home / "work" / ".hidden").write_text("")
    answer = data("GET", "/data/archive/home/work?format=zip")
    found = opened_zip(answer)
    assert found.testzip() is None
    assert sorted(found.namelist()) == NAMES
    link = found.getinfo("work/passwd")
    assert stat.S_ISLNK(link.external_attr >> 16)
    assert found.read(link) == b"/etc/passwd"
    assert found.read("work/a.txt") == b"a" * 1000
    file = found.getinfo("work/a.txt")
    assert file.external_attr >> 16 == stat.S_IFREG | 0o640
    assert file.date_time == time.localtime(1_600_000_000)[:6]
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="work.zip"')
    assert answer.headers["Transfer-Encoding"] == "chunked"


def test_a_folder_as_tar_is_unpacked_by_gnu_tar(data: Client, home: Path, tmp_path: Path) -> None:
    make_tree(home / "work")
    (home / "work" / ".hidden").write_text("")
    strange = b"caf\xe9 \n\"'<b>" + b"x" * 200
    with open(bytes(home) + b"/work/" + strange, "wb") as file:
        file.write(b"strange")
    answer = data("GET", "/data/archive/home/work?format=tar")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(
        ["tar", "-x", "-p", "-f", "-", "-C", unpacked],
        input=answer.body,
        check=True,
        capture_output=True,
    )
    names = {os.fsencode(name) for name in os.listdir(unpacked / "work")}
    assert names == {strange, b".hidden", b"a.txt", b"deep", b"etc", b"passwd"}
    assert (unpacked / "work" / "etc").readlink() == Path("/etc")
    assert (unpacked / "work" / "a.txt").stat().st_mode & 0o7777 == 0o640
    assert (unpacked / "work" / "a.txt").stat().st_mtime == 1_600_000_000
    assert (unpacked / "work" / "deep" / "empty").is_dir()


def test_some_of_a_folder_by_their_names(data: Client, home: Path) -> None:
    make_tree(home / "work")
    with open(bytes(home) + b"/work/b\xff\\..\\x", "wb") as file:
        file.write(b"b")
    path = "/data/archive/home/work?name=a.txt&name=deep&name=b%FF%5C..%5Cx&name=deep"
    assert sorted(opened_zip(data("GET", path)).namelist()) == [
        "a.txt",
        "b%FF%5C..%5Cx",
        "deep/",
        "deep/empty/",
        "deep/run.sh",
    ]
    tar = opened_tar(data("GET", path + "&format=tar"))
    assert "b\udcff\\..\\x" in tar.getnames()
    one = data("HEAD", "/data/archive/home/work?name=deep")
    assert one.headers["Content-Disposition"].startswith('attachment; filename="deep.zip"')
    assert one.body == b""


def test_more_names_than_fit_into_an_address_come_in_a_form(
    client: Callable[[str], Client], home: Path
) -> None:
    """Also with a token that may only read."""
    names = [f"file {number}" for number in range(3000)]
    for name in names:
        (home / name).touch()
    form = "format=tar&" + "&".join("name=" + name.replace(" ", "+") for name in names)
    read = client("read")
    tar = opened_tar(read("POST", "/data/archive/home", form.encode()))
    assert sorted(tar.getnames()) == sorted(names)
    assert read("PUT", "/data/archive/home").status == 405
    found = read("POST", "/data/archive/home", b"&".join([b"name=x"] * 10_011))
    assert (found.status, found.json["field"]) == (422, "name")


def test_requests_that_are_wrong_name_their_field(data: Client, home: Path) -> None:
    (home / "a").write_text("a")
    for path, status, field in (
        ("home?format=rar", 422, "format"),
        ("home?name=..", 422, "name"),
        ("home?name=a%2Fb", 422, "name"),
        ("home?name=", 422, "name"),
        ("home?name=none", 404, "name"),
        ("home/none", 404, ""),
        ("nowhere", 404, ""),
    ):
        found = data("GET", f"/data/archive/{path}")
        assert (found.status, found.json["field"]) == (status, field), path
    assert data("PUT", "/data/archive/home").status == 405


def test_special_files_are_left_out_and_listed(data: Client, home: Path) -> None:
    (home / "work").mkdir()
    os.mkfifo(home / "work" / "pipe")
    (home / "work" / "left out.txt").write_text("the user's own")
    (home / "left out.txt").write_text("the user's own")
    found = opened_zip(data("GET", "/data/archive/home/work"))
    assert sorted(found.namelist()) == ["left out.txt", "work/", "work/left out.txt"]
    assert found.read("left out.txt") == b"'work/pipe': a named pipe, not a file\n"
    path = "/data/archive/home?format=tar&name=work&name=left%20out.txt"
    tar = opened_tar(data("GET", path))
    assert tar.getnames() == ["work", "work/left out.txt", "left out.txt", "left out (2).txt"]


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_file_that_shrinks_or_grows_meanwhile_keeps_the_archive_whole(
    data: Client, home: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE", 100)
    for name in ("grows", "shrinks"):
        (home / name).write_bytes(b"x" * 1000)
    (home / "z").write_bytes(b"z" * 10)
    read = os.pread

    def changing(file: int, count: int, offset: int) -> bytes:
        if offset == 500:
            name = os.readlink(f"/proc/self/fd/{file}")
            os.truncate(name, {"grows": 5000, "shrinks": 600, "z": 10}[Path(name).name])
        return read(file, count, offset)

    monkeypatch.setattr(os, "pread", changing)
    path = f"/data/archive/home?format={kind}&name=grows&name=shrinks&name=z"
    answer = data("GET", path)
    if kind == "tar":
        tar = opened_tar(answer)
        sizes = {each.name: each.size for each in tar.getmembers()}
        shrunk = tar.extractfile("shrinks")
        assert shrunk is not None
        assert shrunk.read() == b"x" * 600 + bytes(400)
    else:
        found = opened_zip(answer)
        assert found.testzip() is None
        sizes = {each.filename: each.file_size for each in found.infolist()}
        assert found.read("z") == b"z" * 10
    list_size = sizes.pop("left out.txt")
    assert list_size > 50
    assert sizes == {"grows": 1000, "shrinks": 1000 if kind == "tar" else 600, "z": 10}


def test_a_client_that_goes_away_ends_the_work(
    client: Callable[[str], Client], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(home / "big", "wb") as file:
        file.truncate(1 << 40)
    last: list[float] = []
    others = set(threading.enumerate())
    read = os.pread

    def noted(file: int, count: int, offset: int) -> bytes:
        last.append(time.monotonic())
        return read(file, count, offset)

    monkeypatch.setattr(os, "pread", noted)
    gone = client("files").connection
    gone.request("GET", "/data/archive/home?format=tar&name=big")
    assert gone.getresponse().read(100_000)
    gone.close()
    left = time.monotonic()
    time.sleep(1.0)
    assert last[-1] - left < 0.5
    started = set(threading.enumerate()) - others
    assert not [thread for thread in started if "process_request" in thread.name]


def test_memory_stays_flat_however_big_the_folder_is(home: Path) -> None:
    """64 MiB and 2,000 files; the process is a new one, whose peak counts."""
    (home / "many").mkdir()
    for number in range(2000):
        (home / "many" / str(number)).touch()
    with open(home / "many" / "big", "wb") as file:
        file.truncate(1 << 26)
    program = """
import os, resource, sys
from portal.node.file_server.archives.sources import Filler
from portal.node.file_server.archives.tars import TarArchive
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
archive = TarArchive(len)
filler = Filler(archive)
filler.add(os.open(sys.argv[1], os.O_RDONLY), b"many", b"many")
filler.finish()
archive.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    found = subprocess.run(
        ["python3", "-c", program, home], check=True, capture_output=True, text=True
    )
    assert int(found.stdout) < 8 * 1024  # KiB


def test_what_is_compressed_already_is_stored_as_it_is(data: Client, home: Path) -> None:
    (home / "noise").write_bytes(os.urandom(300_000))
    (home / "text").write_text("words " * 50_000)
    found = opened_zip(data("GET", "/data/archive/home?name=noise&name=text"))
    kinds = {each.filename: each.compress_type for each in found.infolist()}
    assert kinds == {"noise": zipfile.ZIP_STORED, "text": zipfile.ZIP_DEFLATED}
    assert found.getinfo("text").compress_size < 5000
    assert found.read("noise") == (home / "noise").read_bytes()
    assert found.read("text") == b"words " * 50_000
