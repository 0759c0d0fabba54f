"""The requests of Windows Explorer and macOS Finder, which cannot run here.

Windows: as recorded in mar10/wsgidav, issue 112, and 9001/copyparty, issue 910. macOS: composed
from what couling/WebDAV-Daemon, issue 17, and mar10/wsgidav, issue 19, describe.
"""

from __future__ import annotations

from pathlib import Path

from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.dav.conftest import dav, properties_of, set_, update

WINDOWS_LOCK = (
    b'<?xml version="1.0" encoding="utf-8" ?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/>'
    b"</D:lockscope><D:locktype><D:write/></D:locktype><D:owner><D:href>HOST\\user</D:href>"
    b"</D:owner></D:lockinfo>"
)
APPLE_LOCK = WINDOWS_LOCK.replace(b"HOST\\user", b"http://www.apple.com/webdav_fs/")
TIME = "Thu, 09 Oct 2025 17:54:43 GMT"
SECONDS = 1_760_032_483


def windows_times(*names: str) -> bytes:
    inner = "".join(f"<Z:Win32{name}>{TIME}</Z:Win32{name}>" for name in names)
    attributes = "<Z:Win32FileAttributes>00000020</Z:Win32FileAttributes>"
    return update(set_(inner + attributes), head=' xmlns:Z="urn:schemas-microsoft-com:"')


def test_explorer_copies_a_file(data: Client, home: Path) -> None:
    path = dav("home/compat.py")
    assert data("OPTIONS", dav("")).headers["MS-Author-Via"] == "DAV"
    assert data("PROPFIND", path, b"", {"Depth": "0"}).status == 404
    assert data("PUT", path, b"").status == 201
    timeout = {"Timeout": "Second-3600"}  # no depth
    locked = data("LOCK", path, WINDOWS_LOCK, timeout)
    assert locked.status == 200
    token = {"If": f"({locked.headers['Lock-Token']})"}
    first = windows_times("CreationTime", "LastAccessTime", "LastModifiedTime")
    assert {
        status for status, _ in properties_of(data("PROPPATCH", path, first, token)).values()
    } == {200}
    assert data("HEAD", path).headers["Content-Length"] == "0"
    assert data("PUT", path, b"contents", token).status == 200
    second = windows_times("LastModifiedTime")
    assert {
        status for status, _ in properties_of(data("PROPPATCH", path, second, token)).values()
    } == {200}
    unlock = {"Lock-Token": locked.headers["Lock-Token"]}
    assert data("UNLOCK", path, headers=unlock).status == 204
    assert (home / "compat.py").read_text() == "contents"
    assert (home / "compat.py").stat().st_mtime == SECONDS
    found = properties_of(data("PROPFIND", path, b"", {"Depth": "0"}))
    assert found["{urn:schemas-microsoft-com:}Win32CreationTime"][1].text == TIME
    assert found["{DAV:}getlastmodified"][1].text == TIME


def test_finder_saves_a_file(data: Client, home: Path) -> None:
    path = dav("home/notes.txt")
    assert "2" in data("OPTIONS", dav("home/")).headers["DAV"].replace(" ", "").split(",")
    for name in ("._notes.txt", ".DS_Store"):
        assert data("PROPFIND", dav(f"home/{name}"), b"", {"Depth": "0"}).status == 404
    assert data("PUT", path, b"").status == 201
    headers = {"Depth": "0", "Timeout": "Second-600"}
    locked = data("LOCK", path, APPLE_LOCK, headers)
    token = locked.headers["Lock-Token"]
    connection = data.connection
    pieces = iter([b"con", b"tents"])
    chunked = {"If": f"({token})", "X-Expected-Entity-Length": "8"}
    connection.request("PUT", path, pieces, chunked, encode_chunked=True)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    assert data("LOCK", path, None, {"If": f"({token})", "Timeout": "Second-600"}).status == 200
    time = update(set_(f"<D:getlastmodified>{TIME}</D:getlastmodified>"))
    assert data("PROPPATCH", path, time, {"If": f"({token})"}).status == 207
    assert data("UNLOCK", path, headers={"Lock-Token": token}).status == 204
    assert (home / "notes.txt").read_text() == "contents"
    assert (home / "notes.txt").stat().st_mtime == SECONDS
