"""What arrives in a folder, by every door: a matrix of doors and kinds of folders.

Real accounts of this machine have file servers of their own, in processes of their own; what each
of them may do with the result is tried, not calculated. docs/users/files.md has it as a table.
"""

from __future__ import annotations

import os
import pwd
import shutil
import ssl
import struct
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.certificates import CertificateAuthority
from portal.node.file_server import state
from portal.node.file_server.access import inheritance, posix_acl
from portal.node.file_server.daemon import listen
from portal.node.file_server.order import Order
from portal.node.file_server.server import FileServer
from tests.support.other_account import done_by
from tests.unit.node.file_server.conftest import ID, Client, _Named
from tests.unit.node.file_server.uploads.conftest import Tus, metadata

ALICE, BOB, CAROL = map(pwd.getpwnam, ("games", "nobody", "irc"))
TEAM = 50
"""A group of alice and carol."""
THEN = 1_000_000_000
READ, WRITE, DELETE = 1, 2, 4
ALL = READ | WRITE | DELETE


@dataclass
class Place:
    """The homes of the accounts, and what a server of one needs."""

    base: Path
    certificates: Path
    web: HTTPServer
    """Where files are fetched from."""
    context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.create_default_context(cafile=str(self.certificates / "gateway_ca.pem"))
        self.context.load_cert_chain(str(self.certificates / "client.pem"))
        authority = CertificateAuthority(self.certificates)
        self._certificate, self._client_ca = authority.issue_gateway(ID), authority.client_ca()

    @property
    def fetch_host(self) -> str:
        return f"127.0.0.1:{self.web.server_port}"

    def home(self, account: pwd.struct_passwd) -> Path:
        return self.base / account.pw_name

    def order(self, account: pwd.struct_passwd) -> Order:
        home = self.home(account)
        roots = {"home": home, "storage": home / "storage", "area": self.base / "area"}
        return Order(
            ID,
            self._certificate,
            self._client_ca,
            {name: str(path) for name, path in roots.items()},
            shared=f"{self.base}/{{user}}/storage",
            fetch={"hosts": [self.fetch_host], "http": True},
        )

    def act(self, account: pwd.struct_passwd, work: Callable[[Client, Client], None]) -> None:
        """Do something by the requests of an account: control and data."""

        def run() -> None:
            inheritance._UMASK = 0o022
            state.private_folder = lambda: str(self.home(account) / ".private")
            server = FileServer(self.order(account), listen((0, 0)))
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            work(self._client(server, "control"), self._client(server, "files"))

        groups = () if account is BOB else (TEAM,)
        assert done_by(account, run, groups) == 0

    def _client(self, server: FileServer, kind: str) -> Client:
        client = Client.__new__(Client)
        port = server.socket.getsockname()[1]
        client.connection = _Named(port, self.context, f"{kind}.{ID}.slipway")
        return client


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"contents")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def web() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def place(ca: Path, web: HTTPServer) -> Iterator[Place]:
    base = Path(tempfile.mkdtemp())
    before = os.umask(0o022)
    base.chmod(0o755)
    for account in (ALICE, BOB, CAROL):
        (base / account.pw_name / "storage").mkdir(parents=True)
        for path in (base / account.pw_name, base / account.pw_name / "storage"):
            path.chmod(0o700)
            os.chown(path, account.pw_uid, account.pw_gid)
    (base / "area").mkdir()
    os.chown(base / "area", ALICE.pw_uid, ALICE.pw_gid)
    yield Place(base, ca, web)
    os.umask(before)
    shutil.rmtree(base)


def make_sources(home: Path, account: pwd.struct_passwd) -> None:
    """Private files and folders of an account, one for each door that copies or moves."""
    for door in ("copy", "move", "dav_copy", "dav_move"):
        folder = home / "sources" / door / "tree"
        folder.mkdir(parents=True)
        for path in (folder / "inner", folder.parent / "file", folder.parent / "program"):
            path.write_text("contents")
            path.chmod(0o700 if path.name == "program" else 0o600)
            os.utime(path, (THEN, THEN))
        folder.chmod(0o700)
    with tarfile.open(home / "sources/unpack.tar", "w") as archive:
        archive.add(home / "sources/copy", "unpack", filter=as_private_folder)
    for each in (home / "sources", *(home / "sources").rglob("*")):
        os.chown(each, account.pw_uid, account.pw_gid)


def as_private_folder(member: tarfile.TarInfo) -> tarfile.TarInfo:
    if member.isdir():
        member.mode = 0o700
    return member


# The doors: each leaves something in the folder, whose name begins with that of the door


Door = Callable[[Client, Client, str], None]


def done(answer: Any) -> None:
    assert answer.status in (200, 201, 202, 204, 207), answer.body


def put(_control: Client, data: Client, to: str) -> None:
    done(data("PUT", f"/data/files/{to}/put", b"contents"))


def editor(_control: Client, data: Client, to: str) -> None:
    """A new file, which is then saved twice."""
    path = f"/data/files/{to}/editor"
    tag = ""
    for headers in ({"If-None-Match": "*"}, {}, {}):
        answer = data("PUT", path, b"contents", headers or {"If-Match": tag})
        done(answer)
        tag = answer.json["etag"]


def large(_control: Client, data: Client, to: str) -> None:
    """With a record, as tus and PUT have for large files."""
    done(data("PUT", f"/data/files/{to}/large", b"c" * (9 << 20)))


def tus(_control: Client, data: Client, to: str) -> None:
    """In two pieces."""
    client = Tus(data)
    url = client.begin(f"{to}/tus", 8)
    done(client.patch(url, 0, b"cont"))
    done(client.patch(url, 4, b"ents"))


def tus_replace(_control: Client, data: Client, to: str) -> None:
    client = Tus(data)
    for _ in range(2):
        done(client.patch(client.begin(f"{to}/tus_replace", 8, on_conflict="replace"), 0, b"x" * 8))


def tus_at_once(_control: Client, data: Client, to: str) -> None:
    meta = metadata(path=f"{to}/tus_at_once")
    done(Tus(data).post(b"contents", Upload_Length="8", Upload_Metadata=meta))


def tus_joined(_control: Client, data: Client, to: str) -> None:
    client = Tus(data)
    parts = [client.partial(part) for part in (b"cont", b"ents")]
    done(client.final(parts, f"{to}/tus_joined"))


def tus_folders(_control: Client, data: Client, to: str) -> None:
    """With the folders above it."""
    client = Tus(data)
    done(client.patch(client.begin(f"{to}/tus_folders/deep/file", 8), 0, b"contents"))


def dav_put(_control: Client, data: Client, to: str) -> None:
    done(data("PUT", f"/data/dav/{to}/dav_put", b"contents"))


def dav_mkcol(_control: Client, data: Client, to: str) -> None:
    done(data("MKCOL", f"/data/dav/{to}/dav_mkcol"))


def folder(control: Client, data: Client, to: str) -> None:
    done(control("POST", f"/v1/folder/{to}/folder"))
    done(data("PUT", f"/data/files/{to}/folder/file", b"contents"))


def operation(kind: str, control: Client, _data: Client, to: str) -> None:
    items = [f"home/sources/{kind}/{name}" for name in ("file", "program", "tree")]
    for item in items:
        name = item.rpartition("/")[2]
        done(control("POST", f"/v1/rename/{item}", {"name": f"{kind}_{name}"}))
    items = [item.replace(f"/{kind}/", f"/{kind}/{kind}_") for item in items]
    answer = control("POST", "/v1/operations", {"kind": kind, "items": items, "to": to})
    assert (answer.json["state"], answer.json["problems"]) == ("done", []), answer.json


def unpack(control: Client, _data: Client, to: str) -> None:
    """An archive of private files and folders."""
    order = {"kind": "unpack", "items": ["home/sources/unpack.tar"], "to": to}
    answer = control("POST", "/v1/operations", order)
    assert (answer.json["state"], answer.json["problems"]) == ("done", []), answer.json


def fetch(url: str, control: Client, _data: Client, to: str) -> None:
    answer = control("POST", "/v1/operations", {"kind": "fetch", "url": url, "to": to})
    assert (answer.json["state"], answer.json["problems"]) == ("done", []), answer.json


def dav(kind: str, _control: Client, data: Client, to: str) -> None:
    for name in ("file", "program", "tree"):
        head = {"Destination": f"/data/dav/{to}/dav_{kind}_{name}"}
        done(data(kind.upper(), f"/data/dav/home/sources/dav_{kind}/{name}", headers=head))


NEW: tuple[Door, ...] = (
    put, editor, large, tus, tus_replace, tus_at_once, tus_joined, tus_folders, dav_put, dav_mkcol,
    folder,
)  # fmt: skip
FROM_ELSEWHERE: tuple[Door, ...] = (
    partial(operation, "copy"),
    partial(operation, "move"),
    partial(dav, "copy"),
    partial(dav, "move"),
    unpack,
)
"""Doors through which something comes that has permissions of its own."""


# The kinds of folders


@dataclass(frozen=True)
class Kind:
    """A folder, and who may do what with all that arrives in it."""

    name: str
    at: str
    """Location for the account that acts."""
    path: str
    """Below the base."""
    prepare: Callable[[Place, Path], None]
    may: dict[str, int]
    may_private: dict[str, int] | None = None
    """The same for copies and moves of private files; None: the same."""
    actor: pwd.struct_passwd = ALICE
    group: int | None = None
    """None: the actor's."""


def plain(mode: int, group: int = -1) -> Callable[[Place, Path], None]:
    def prepare(_place: Place, path: Path) -> None:
        path.mkdir()
        os.chown(path, ALICE.pw_uid, ALICE.pw_gid if group < 0 else group)
        path.chmod(mode)

    return prepare


def shared(access: str) -> Callable[[Place, Path], None]:
    def prepare(place: Place, path: Path) -> None:
        plain(0o700)(place, path)
        share = {"kind": "user", "name": BOB.pw_name, "access": access}

        def give(control: Client, _data: Client) -> None:
            done(control("PUT", "/v1/shares/storage/data", share))

        place.act(ALICE, give)

    return prepare


def listed(place: Place, path: Path) -> None:
    """By setfacl: carol may change the folder, and all that will be in it."""
    plain(0o700)(place, path)
    rows = ((1, 7, -1), (2, 7, CAROL.pw_uid), (4, 0, -1), (16, 7, -1), (32, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, bits, number & 0xFFFFFFFF) for tag, bits, number in rows
    )
    for attribute in (posix_acl.ACCESS, posix_acl.DEFAULT):
        os.setxattr(path, attribute, acl)


KINDS = [
    Kind(
        "private", "home/data", "games/data", plain(0o700),
        {"games": ALL, "nobody": 0, "irc": 0},
    ),
    Kind(
        "readable by all", "area/data", "area/data", plain(0o755),
        {"games": ALL, "nobody": READ, "irc": READ}, {"games": ALL, "nobody": 0, "irc": 0},
    ),
    Kind(
        "sticky", "area/data", "area/data", plain(0o1777),
        {"games": ALL, "nobody": READ, "irc": READ}, {"games": ALL, "nobody": 0, "irc": 0},
    ),
    Kind(
        "sticky, of somebody else", "area/data", "area/data", plain(0o1777),
        {"games": READ | DELETE, "nobody": ALL, "irc": READ},
        {"games": DELETE, "nobody": ALL, "irc": 0}, actor=BOB,
    ),
    Kind(
        "shared read", "storage/data", "games/storage/data", shared("read"),
        {"games": ALL, "nobody": READ, "irc": 0},
    ),
    Kind(
        "shared write", "storage/data", "games/storage/data", shared("write"),
        {"games": ALL, "nobody": ALL, "irc": 0},
    ),
    Kind(
        "shared write, by the other one", "shared/games/data", "games/storage/data",
        shared("write"), {"games": ALL, "nobody": ALL, "irc": 0}, actor=BOB,
    ),
    Kind(
        "set-group-ID", "area/data", "area/data", plain(0o2770, TEAM),
        {"games": ALL, "nobody": 0, "irc": READ | DELETE}, group=TEAM,
    ),
    Kind(
        "default list", "area/data", "area/data", listed,
        {"games": ALL, "nobody": 0, "irc": ALL},
    ),
]  # fmt: skip


def may(account: pwd.struct_passwd, path: Path) -> int:
    """What an account can really do with a file or folder, by doing it."""

    def attempt() -> None:
        result = 0
        for bit, call in ((READ, read), (WRITE, write), (DELETE, delete)):
            try:
                call(path)
            except PermissionError:
                continue
            result |= bit
        os._exit(result)

    return done_by(account, attempt, () if account is BOB else (TEAM,))


def read(path: Path) -> None:
    os.close(os.open(path, os.O_RDONLY))
    if path.is_dir():
        os.listdir(path)
        os.stat(path / ".")


def write(path: Path) -> None:
    if path.is_dir():
        (path / "new").touch()
        (path / "new").unlink()
    else:
        path.open("ab").close()


def delete(path: Path) -> None:
    """Take it away, and put it back."""
    path.rename(path.with_name("away"))
    path.with_name("away").rename(path)


def modified(path: Path) -> float:
    return path.lstat().st_mtime


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_arrives_gets_what_the_folder_gives(place: Place, kind: Kind) -> None:
    path = place.base / kind.path
    if kind.at.startswith("area"):
        os.chown(place.base / "area", 0, 0)
    kind.prepare(place, path)
    make_sources(place.home(kind.actor), kind.actor)

    def use_all(control: Client, data: Client) -> None:
        fetched: Door = partial(fetch, f"http://{place.fetch_host}/fetch")
        for door in (*NEW, fetched, *FROM_ELSEWHERE):
            door(control, data, kind.at)

    place.act(kind.actor, use_all)
    arrived = sorted(path.rglob("*"))
    assert len(arrived) == len(NEW) + 3 + 1 + 4 * (len(FROM_ELSEWHERE) - 1) + 5
    assert [each for each in arrived if each.name.startswith(".")] == []
    for each in arrived:
        words, status = str(each.relative_to(path)), each.stat()
        assert status.st_uid == kind.actor.pw_uid, words
        expected = kind.actor.pw_gid if kind.group is None else kind.group
        assert status.st_gid == expected, words
        assert status.st_mode & 0o7000 == (0o2000 if kind.group and each.is_dir() else 0), words
        is_private = words.startswith(("copy", "move", "dav_copy", "dav_move", "unpack"))
        permitted = kind.may_private if is_private and kind.may_private else kind.may
        for account in (ALICE, BOB, CAROL):
            assert may(account, each) == may_of(permitted, account, each, path), (words, account)
        if is_private and each.is_file():
            assert bool(status.st_mode & 0o100) == words.endswith("program"), words
            assert modified(each) == THEN, words
    check_owner_deletes_all(place, path)


def may_of(permitted: dict[str, int], account: pwd.struct_passwd, each: Path, top: Path) -> int:
    """In a folder without a sticky bit, whoever may write there may delete, and nobody else."""
    expected = permitted[account.pw_name]
    if each.parent == top:
        return expected
    above = may(account, each.parent)
    if not above & READ:
        return 0
    return expected & ~DELETE | (DELETE if above & WRITE else 0)


def check_owner_deletes_all(place: Place, path: Path) -> None:
    """Whoever owns a folder can delete all that is in it."""

    def remove() -> None:
        for each in path.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    if path.stat().st_mode & 0o1000 and any(
        each.stat().st_uid == BOB.pw_uid for each in path.iterdir()
    ):
        return  # the files of others are theirs alone
    assert done_by(ALICE, remove, (TEAM,)) == 0
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("prepare", [plain(0o2770, TEAM), listed])
def test_what_leaves_such_a_folder_is_as_a_new_file_of_the_home(
    place: Place, prepare: Callable[[Place, Path], None]
) -> None:
    os.chown(place.base / "area", 0, 0)
    prepare(place, place.base / "area/data")

    def make_and_move(control: Client, data: Client) -> None:
        tus_folders(control, data, "area/data")
        order = {"kind": "move", "items": ["area/data/tus_folders"], "to": "home"}
        assert control("POST", "/v1/operations", order).json["state"] == "done"

    place.act(ALICE, make_and_move)
    top = place.home(ALICE) / "tus_folders"
    for each in (top, *top.rglob("*")):
        status = each.stat()
        assert (status.st_uid, status.st_gid) == (ALICE.pw_uid, ALICE.pw_gid)
        assert status.st_mode & 0o7022 == 0, (each, oct(status.st_mode))
        assert os.listxattr(each) == []


def test_a_move_within_one_regime_changes_nothing(place: Place) -> None:
    """Permissions that were set by hand stay when a file only gets another place."""
    home = place.home(ALICE)
    for name in ("one", "two"):
        plain(0o755)(place, home / name)
    file = home / "one/file"
    file.write_text("x")
    os.chown(file, ALICE.pw_uid, TEAM)
    file.chmod(0o664)

    def move(control: Client, _data: Client) -> None:
        order = {"kind": "move", "items": ["home/one/file"], "to": "home/two"}
        assert control("POST", "/v1/operations", order).json["state"] == "done"

    place.act(ALICE, move)
    status = (home / "two/file").stat()
    assert (status.st_mode & 0o777, status.st_gid) == (0o664, TEAM)
