"""Alice shares, moves, renames and deletes through all doors, bob does what he may, and everything
crashes: what bob can read is in alice's list, at the latest when she looks.

What bob can read is asked of the kernel, with his account's rights. SLIPWAY_EXAMPLES chooses how
many sequences of steps are tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from portal.core.auth.person import Person
from portal.core.files.server import FileReply, FileRequest, FileServer
from portal.core.files.shares import Access, FolderShare, ShareKey, ShareState
from portal.errors import PortalError
from portal.node.file_server import renames
from portal.node.file_server.access import posix_acl
from portal.services.files.shares import FolderShares
from portal.store.shares import ShareStore
from tests.support.fakes import make_world
from tests.support.file_servers import authorities, end_file_servers
from tests.support.other_account import BOB, as_bob, files_of, private_home, readable_by_bob
from tests.unit.node.file_server.conftest import Client
from tests.unit.web.conftest import make_settings

ALICE, NOBODY = Person("alice", False, "1"), Person(BOB.pw_name, False, "2")
NAMES = st.sampled_from("ab")
BELOW = st.sampled_from(["", "", "/sub", "/file", "/sub/file", "/theirs"])
STORAGES = st.sampled_from(["storage", "storage/", "%73torage", "home/storage", "home/alias"])
TARGETS = st.sampled_from(["home", "storage", "storage//b/sub"])
CONFLICTS = st.sampled_from(["refuse", "rename", "replace", "skip"])
STEPS = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 12))
"""After how many calls the portal or the file server is killed."""


class Killed(Exception):
    """The process has ended: nothing that it would have done is done."""


class Life:
    """How many calls a process has left; it stays dead until it is started again."""

    def __init__(self, make_error: Callable[[], Exception]) -> None:
        self._make_error = make_error
        self.left: int | None = None

    def wrap(self, call: Callable[..., Any], *, reach: bool = True) -> Callable[..., Any]:
        """The call, before or (`reach`) after which the process may be killed."""

        def mortal(*arguments: Any, **more: Any) -> Any:
            if self.left is None:
                return call(*arguments, **more)
            if self.left < 0:
                raise self._make_error()
            self.left -= 1
            if self.left < 0 and not reach:
                raise self._make_error()
            found = call(*arguments, **more)
            if self.left < 0:
                raise self._make_error()
            return found

        return mortal


class MortalStore:
    """The store, as a portal has it that can be killed."""

    def __init__(self, store: ShareStore, life: Life) -> None:
        self._store, self._life = store, life

    def __getattr__(self, name: str) -> Any:
        return self._life.wrap(getattr(self._store, name))


class TwoUsers(RuleBasedStateMachine):
    """Alice's home, her file server, the portal and bob."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        home = self._stack.enter_context(private_home())
        self._stack.callback(end_file_servers)
        world = make_world(make_settings(home.parent))
        self.store = world.systems.stores.shares
        self.portal = Life(Killed)
        self.process = Life(lambda: OSError(5, "killed"))
        self.servers = world.file_servers
        self.home = world.file_servers.home("alice")
        for path in (home.parent / "state", self.servers.folder, self.servers.folder / "homes"):
            if path.exists():
                path.chmod(0o711)
        (self.home / "alias").symlink_to("storage")
        store: Any = MortalStore(self.store, self.portal)
        self.shares = FolderShares(
            world.services.files,
            store,
            world.accounts,
            world.clock,
            lambda *_: None,
            world.store.mounting,
            check_names=False,
        )
        ask = self.servers.ask

        def lost(server: FileServer, request: FileRequest) -> FileReply | None:
            reply: FileReply | None = self.portal.wrap(ask)(server, request)
            return reply

        self._patch(self.servers, "ask", lost)
        self._patch(posix_acl, "write", self.process.wrap(posix_acl.write))
        self._patch(posix_acl, "remove_default", self.process.wrap(posix_acl.remove_default))
        self._patch(renames, "_renameat2", self.process.wrap(renames._renameat2))
        self.data: Client | None = None

    def _patch(self, place: object, name: str, new: object) -> None:
        self._stack.enter_context(patch.object(place, name, new))

    def teardown(self) -> None:
        if self.data:
            self.data.connection.close()
        self._stack.close()

    @contextmanager
    def until(self, portal: int | None, process: int | None) -> Iterator[None]:
        """Both may be killed during the body, and are started again after it."""
        self.portal.left, self.process.left = portal, process
        try:
            with suppress(PortalError, Killed):
                yield
        finally:
            killed = self.process.left is not None and self.process.left < 0
            self.portal.left = self.process.left = None
            if killed:
                self._restart()

    def _restart(self) -> None:
        self.servers.kill("alice")
        if self.data:
            self.data.connection.close()
        self.data = None

    def _client(self) -> Client:
        """WebDAV, as HAProxy lets alice's programs reach her file server."""
        self.shares.mine(ALICE)  # starts it
        if self.data is None:
            server = self.servers.running["alice"]
            self.data = Client(server, authorities(), "files", server._order.id)
        return self.data

    def key(self, folder: str) -> ShareKey:
        return ShareKey("alice", folder, "user", BOB.pw_name)

    def operate(self, **order: Any) -> None:
        begun = self.shares.operate(ALICE, order, end_shares=True)
        self.servers.running["alice"].files.operations.get(begun.id).over.wait(20)

    # What alice does

    @initialize()
    def folders(self) -> None:
        for name in "ab":
            self.make(name)
            self.share(name, "write", None, None)

    @rule(name=NAMES)
    def make(self, name: str) -> None:
        folder = self.home / "storage" / name
        if not folder.exists():
            (folder / "sub").mkdir(parents=True)
            (folder / "file").write_text(name)
            (folder / "sub" / "file").write_text(name)

    @rule(name=NAMES, access=st.sampled_from(["read", "write"]), portal=STEPS, process=STEPS)
    def share(self, name: str, access: Access, portal: int | None, process: int | None) -> None:
        with self.until(portal, process):
            self.shares.share(ALICE, self.key(name), access)

    @rule(name=NAMES, portal=STEPS, process=STEPS)
    def take_back(self, name: str, portal: int | None, process: int | None) -> None:
        with self.until(portal, process):
            self.shares.take_back(ALICE, self.key(name))

    @rule(storage=STORAGES, name=NAMES, new=NAMES, portal=STEPS, process=STEPS)
    def rename(
        self, storage: str, name: str, new: str, portal: int | None, process: int | None
    ) -> None:
        with self.until(portal, process):
            self.shares.rename(ALICE, f"{storage}/{name}", new)

    @rule(
        kind=st.sampled_from(["move", "copy", "delete"]),
        storage=STORAGES,
        name=NAMES,
        below=BELOW,
        to=TARGETS,
        conflict=CONFLICTS,
        portal=STEPS,
        process=STEPS,
    )
    def operation(
        self,
        kind: str,
        storage: str,
        name: str,
        below: str,
        to: str,
        conflict: str,
        portal: int | None,
        process: int | None,
    ) -> None:
        order: dict[str, Any] = {"kind": kind, "items": [f"{storage}/{name}{below}"]}
        if kind != "delete":
            order |= {"to": to, "on_conflict": conflict}
        with self.until(portal, process):
            self.operate(**order)

    @rule(
        method=st.sampled_from(["MOVE", "COPY", "DELETE"]),
        storage=STORAGES,
        name=NAMES,
        below=BELOW,
        to=TARGETS,
        new=NAMES,
        process=STEPS,
    )
    def webdav(
        self, method: str, storage: str, name: str, below: str, to: str, new: str,
        process: int | None,
    ) -> None:  # fmt: skip
        client = self._client()
        headers = {"Destination": f"/data/dav/{to}/{new}"}
        with self.until(None, process):
            client(method, f"/data/dav/{storage}/{name}{below}", headers=headers)

    @rule(name=NAMES, new=NAMES)
    def rename_in_a_shell(self, name: str, new: str) -> None:
        storage = self.home / "storage"
        if (storage / name).is_dir() and not (storage / new).exists():
            (storage / name).rename(storage / new)

    @rule(name=NAMES)
    def delete_in_a_shell(self, name: str) -> None:
        shutil.rmtree(self.home / "storage" / name, ignore_errors=True)

    # What bob does

    @rule(name=NAMES, script=st.sampled_from([
        "mkdir theirs; mv file theirs/; mv sub theirs/", "mv sub/file file2", "mv sub sub2",
        "mv theirs/* .", "echo x > new; mkdir -p theirs/deep",
    ]))  # fmt: skip
    def bob_moves(self, name: str, script: str) -> None:
        as_bob("sh", "-c", f"cd {self.home}/storage/{name} 2>/dev/null && {script}")

    # What must hold

    def _unlisted(self) -> set[Path]:
        """What bob can read of hers and is in no folder of her list."""
        listed = {share.key.folder for share in self.store.of_owner("alice")}
        hers = [path for path in files_of(self.home) if path.stat().st_uid == os.geteuid()]
        storage = self.home / "storage"
        return {
            path
            for path in readable_by_bob(hers)
            if storage not in path.parents or path.relative_to(storage).parts[0] not in listed
        }

    @invariant()
    def what_bob_reads_is_listed(self) -> None:
        if self._unlisted():
            self.shares.mine(ALICE)
            assert self._unlisted() == set()

    @rule()
    def look(self) -> None:
        """Her list is what there is, and so is bob's; what was cut off is finished."""
        for folder in {share.key.folder for share in self.shares.mine(ALICE)}:
            with suppress(PortalError):
                self.shares.of_folder(ALICE, folder)
        found = self.shares.mine(ALICE)
        folders = [self.home / "storage" / share.key.folder for share in found]
        assert [share.state for share in found] == [ShareState.GIVEN] * len(found)
        assert readable_by_bob(folders) == set(folders)
        assert {f.folder for f in self.shares.with_me(NOBODY)} == _folders(found)


def _folders(shares: list[FolderShare]) -> set[str]:
    return {share.key.folder for share in shares}


TwoUsers.TestCase.settings = settings(
    max_examples=int(os.environ.get("SLIPWAY_EXAMPLES", "15")),
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)
TestTwoUsers = TwoUsers.TestCase
