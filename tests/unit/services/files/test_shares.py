"""Folders are shared: rows, access control lists by real file servers, and what crashes leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.auth.accounts import Identity
from portal.core.auth.person import Person
from portal.core.files.server import FileReply, FileRequest, FileServer, NoReply
from portal.core.files.shares import GROUP, USER, FolderShare, SharedFolder, ShareKey, ShareState
from portal.core.session.session import State
from portal.errors import Conflict, FolderShared, InvalidRequest, NotFound, Unavailable
from portal.node.file_server.access import posix_acl
from portal.node.file_server.sharing import shares as file_server_shares
from portal.services.files.shares import FolderShares
from tests.support.fakes import World, make_world
from tests.support.stored_sessions import ended_session
from tests.unit.web.conftest import make_settings

ALICE, BOB = Person("alice", False, "1"), Person("bob", False, "2")
WITH_BOB = ShareKey("alice", "data", "user", "bob")
REAL = ShareKey("alice", "data", "user", "nobody")
"""An account of the test's machine."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(make_settings(tmp_path))


@pytest.fixture
def shares(world: World) -> FolderShares:
    return world.services.shares


@pytest.fixture
def folder(world: World) -> Path:
    path = world.file_servers.home("alice") / "storage" / "data"
    path.mkdir()
    return path


def states(shares: FolderShares) -> list[tuple[str, str, str]]:
    return [(each.key.name, each.access, each.state.value) for each in shares.mine(ALICE)]


def test_a_share_is_given_changed_and_taken_back(shares: FolderShares, folder: Path) -> None:
    given, report = shares.share(ALICE, REAL, "read")
    assert (given.state, report["done"]) == (ShareState.GIVEN, 1)
    assert posix_acl.read(str(folder)) is not None
    shares.share(ALICE, REAL, "write")
    assert states(shares) == [("nobody", "write", "given")]
    assert shares.take_back(ALICE, REAL)
    assert states(shares) == []
    assert posix_acl.read(str(folder)) is None


def test_somebody_who_does_not_exist_is_stored_and_answered_the_same(
    shares: FolderShares, folder: Path
) -> None:
    unknown = ShareKey("alice", "data", "user", "n0-such")
    known, report = shares.share(ALICE, REAL, "read")
    same, equal = shares.share(ALICE, unknown, "read")
    assert same.state is known.state
    assert {**equal, "name": ""} == {**report, "name": ""}
    assert shares.take_back(ALICE, unknown) is shares.take_back(ALICE, REAL)


def test_what_is_shared_with_me_by_name_and_by_group(
    world: World, shares: FolderShares, folder: Path
) -> None:
    (folder.parent / "more").mkdir()
    shares.share(ALICE, WITH_BOB, "read")
    assert shares.with_me(BOB) == [SharedFolder("alice", "data", "read")]
    for name in ("data", "more"):
        shares.share(ALICE, ShareKey("alice", name, "group", "people"), "write")
    assert shares.with_me(BOB) == [SharedFolder("alice", "data", "read")]
    world.accounts.identities["bob"] = Identity(1002, frozenset({"people"}))
    assert shares.with_me(BOB) == [
        SharedFolder("alice", "data", "read"),  # his own entry decides
        SharedFolder("alice", "more", "write"),
    ]
    assert shares.with_me(ALICE) == []


@pytest.mark.parametrize("name", ["", "alice", "a b", "a/b", "a:b", "x" * 65, "a\n"])
def test_a_wrong_name_is_refused(shares: FolderShares, folder: Path, name: str) -> None:
    with pytest.raises(InvalidRequest):
        shares.share(ALICE, ShareKey("alice", folder.name, "user", name), "read")
    assert states(shares) == []


def test_what_the_file_server_refuses_leaves_no_row(shares: FolderShares, folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(NotFound):
        shares.share(ALICE, ShareKey("alice", "none", "user", "bob"), "read")
    with pytest.raises(Conflict, match="link"):
        shares.share(ALICE, ShareKey("alice", "link", "user", "bob"), "read")
    assert states(shares) == []


def test_a_lost_answer_leaves_the_share_listed_and_the_next_look_finishes_it(
    world: World, shares: FolderShares, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answers(world, monkeypatch)
    with pytest.raises(Unavailable):
        shares.share(ALICE, REAL, "read")
    assert states(shares) == [("nobody", "read", "giving")]
    monkeypatch.undo()
    world.file_servers.kill("alice")
    found, _ = shares.of_folder(ALICE, "data")
    assert [share.state for share in found] == [ShareState.GIVEN]
    lose_answers(world, monkeypatch)
    with pytest.raises(Unavailable):
        shares.take_back(ALICE, REAL)
    monkeypatch.undo()
    assert states(shares) == [("nobody", "read", "ending")]
    assert shares.with_me(Person("nobody", False, "3")) == []
    assert shares.of_folder(ALICE, "data")[0] == []
    assert posix_acl.read(str(folder)) is None


def lose_answers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes reach the file server, but its answers are lost."""
    ask = world.file_servers.ask

    def lose(server: FileServer, request: FileRequest) -> FileReply | NoReply:
        reply = ask(server, request)
        if request.method != "GET":
            raise Unavailable("The line was cut.")
        return reply

    monkeypatch.setattr(world.file_servers, "ask", lose)


def test_a_folder_that_has_gone_needs_nothing_taken_back(
    shares: FolderShares, folder: Path
) -> None:
    shares.share(ALICE, WITH_BOB, "read")
    folder.rmdir()
    assert shares.take_back(ALICE, WITH_BOB)
    with pytest.raises(NotFound):
        shares.take_back(ALICE, WITH_BOB)


def folders_of_rows(world: World) -> list[str]:
    return [share.key.folder for share in world.systems.stores.shares.of_owner("alice")]


def test_a_renamed_folder_keeps_its_shares(
    world: World, shares: FolderShares, folder: Path
) -> None:
    shares.share(ALICE, REAL, "read")
    with shares.while_renaming(ALICE, "data", "new"):
        assert folders_of_rows(world) == ["data", "new"]
        folder.rename(folder.parent / "new")
    assert folders_of_rows(world) == ["new"]
    with pytest.raises(Conflict), shares.while_renaming(ALICE, "new", "taken"):
        raise Conflict("taken")
    assert folders_of_rows(world) == ["new"]
    shares.end_all(ALICE, "new")
    assert states(shares) == []
    assert posix_acl.read(str(folder.parent / "new")) is None


def test_shares_are_in_the_audit_log(world: World, shares: FolderShares, folder: Path) -> None:
    shares.share(ALICE, WITH_BOB, "read")
    shares.take_back(ALICE, WITH_BOB)
    admin = Person("admin", True, "3")
    found, _ = world.services.administration.events(admin, AuditFilter(), 10, None)
    events = [(event.action, event.target) for event in found]
    assert sorted(events) == [
        ("folder.share", "data with the user bob (read)"),
        ("folder.unshare", "data with the user bob"),
    ]


def test_a_rename_takes_shares_along_and_deleting_ends_them(
    shares: FolderShares, folder: Path
) -> None:
    shares.share(ALICE, REAL, "read")
    assert shares.rename(ALICE, "storage/data", "new").name == "new"
    assert [share.key.folder for share in shares.mine(ALICE)] == ["new"]
    (folder.parent / "taken").mkdir()
    with pytest.raises(Conflict):
        shares.rename(ALICE, "storage/new", "taken")
    assert [share.key.folder for share in shares.mine(ALICE)] == ["new"]
    shares.operate(ALICE, {"kind": "delete", "items": ["storage/new"]}, end_shares=True)
    assert states(shares) == []


def test_access_that_was_given_in_a_shell_is_listed_and_can_be_taken_back(
    shares: FolderShares, folder: Path
) -> None:
    entry = (posix_acl.USER, 65534)
    posix_acl.write(str(folder), posix_acl.grant(posix_acl.of_mode(0o755), entry, 5))
    found, _ = shares.of_folder(ALICE, "data")
    assert [(one.key.name, one.access) for one in found] == [("nobody", "read")]
    assert shares.take_back(ALICE, REAL)
    assert posix_acl.read(str(folder)) is None


def test_while_another_change_goes_on_a_share_stays_as_it_is(
    shares: FolderShares, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares.share(ALICE, REAL, "read")
    monkeypatch.setattr(file_server_shares, "WAIT_SECONDS", 0.0)
    for number in range(3000):
        (folder / str(number)).touch()
    given, _ = shares.share(ALICE, ShareKey("alice", "data", "group", "daemon"), "read")
    assert given.state is ShareState.GIVING
    with pytest.raises(Conflict, match="being changed"):
        shares.take_back(ALICE, REAL)
    assert ("nobody", "read", "given") in states(shares)


def test_the_share_of_a_folder_that_became_a_link_can_be_taken_back(
    shares: FolderShares, folder: Path
) -> None:
    shares.share(ALICE, REAL, "read")
    folder.rename(folder.parent / "real")
    folder.symlink_to(folder.parent / "real")
    assert shares.take_back(ALICE, REAL)
    assert [share.key.folder for share in shares.mine(ALICE)] == ["real"]
    assert shares.take_back(ALICE, replace(REAL, folder="real"))
    assert states(shares) == []
    assert posix_acl.read(str(folder)) is None


SPELLINGS = ["storage/data", "storage//data", "/%73torage/data/", "home/storage/data"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_leads_past_the_shares(
    shares: FolderShares, folder: Path, spelling: str
) -> None:
    shares.share(ALICE, REAL, "read")
    assert shares.rename(ALICE, spelling, "new").name == "new"
    assert [share.key.folder for share in shares.mine(ALICE)] == ["new"]
    new = spelling.replace("data", "new")
    shares.operate(ALICE, {"kind": "move", "items": [new], "to": "home"}, end_shares=True)
    assert states(shares) == []
    assert posix_acl.read(str(folder.parents[1] / "new")) is None


def test_a_rename_onto_another_shared_folder_leaves_both_listed(
    world: World, shares: FolderShares, folder: Path
) -> None:
    (folder.parent / "taken").mkdir()
    taken = replace(REAL, folder="taken")
    shares.share(ALICE, REAL, "read")
    shares.share(ALICE, taken, "write")
    before = world.systems.stores.shares.of_owner("alice")
    with pytest.raises(Conflict, match="exists already"):
        shares.rename(ALICE, "storage/data", "taken")
    shares.rename(ALICE, "storage/data", "data")
    assert world.systems.stores.shares.of_owner("alice") == before


def test_what_is_replaced_is_no_longer_shared_before(shares: FolderShares, folder: Path) -> None:
    shares.share(ALICE, REAL, "read")
    (folder.parents[1] / "data").mkdir()
    order = {"kind": "move", "items": ["home/data"], "to": "storage", "on_conflict": "replace"}
    shares.operate(ALICE, order, end_shares=True)
    assert states(shares) == []


def test_a_refused_operation_ends_no_share(shares: FolderShares, folder: Path) -> None:
    shares.share(ALICE, REAL, "read")
    (folder.parents[1] / "data").mkdir()
    order = {"kind": "move", "items": ["storage/data"], "to": "home"}
    with pytest.raises(Conflict, match="already"):
        shares.operate(ALICE, order, end_shares=True)
    with pytest.raises(InvalidRequest):
        shares.operate(ALICE, {**order, "to": "home/.."}, end_shares=True)
    assert [each.key.folder for each in shares.mine(ALICE)] == ["data"]


def test_lists_agree_with_what_was_done_in_a_shell(shares: FolderShares, folder: Path) -> None:
    (folder.parent / "more").mkdir()
    unknown = ShareKey("alice", "data", "user", "n0-such")
    for key in (REAL, replace(REAL, folder="more"), unknown):
        shares.share(ALICE, key, "read")
    nobody = Person("nobody", False, "3")
    (folder.parent / "more").rmdir()
    entry = (posix_acl.USER, 65534)
    posix_acl.write(str(folder), posix_acl.grant(posix_acl.of_mode(0o700), entry, 7))
    assert states(shares) == [("n0-such", "read", "given"), ("nobody", "write", "given")]
    posix_acl.write(str(folder), posix_acl.of_mode(0o700))
    found, _ = shares.of_folder(ALICE, "data")
    assert [each.key for each in found] == [unknown]
    assert shares.with_me(nobody) == []


def test_a_file_server_that_is_away_leaves_the_stored_list(
    world: World, shares: FolderShares, folder: Path
) -> None:
    shares.share(ALICE, REAL, "read")
    folder.rmdir()
    world.file_servers.kill("alice")
    world.file_servers.away = True
    assert states(shares) == [("nobody", "read", "given")]
    world.file_servers.away = False
    world.clock.advance(minutes=2)  # nobody tries again at once
    assert states(shares) == []


def test_a_change_that_was_done_in_part_stays_unfinished(
    shares: FolderShares, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares.share(ALICE, REAL, "read")
    monkeypatch.setattr(file_server_shares, "MOST_WALKS", 0)
    with pytest.raises(Conflict, match="all the time"):
        shares.take_back(ALICE, REAL)
    assert states(shares) == [("nobody", "read", "ending")]
    assert shares.of_folder(ALICE, "data")[0][0].state is ShareState.ENDING
    monkeypatch.undo()
    assert shares.of_folder(ALICE, "data")[0] == []


def test_what_a_file_server_makes_up_changes_nothing(
    world: World, shares: FolderShares, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is its user's own process."""
    shares.share(ALICE, REAL, "read")
    strange = {
        "missing": [7, -1, "0", None],
        "ended": {"0": 1},
        "shares": [
            7,
            *(
                {"folder": folder, "name": "x"}
                for folder in (7, "", "%ff", "\ud800", "..", "a%2Fb", "a" * 256)
            ),
            {"folder": "data", "name": "a b"},
        ],
    }
    monkeypatch.setattr(world.file_servers, "ask", lambda *_: FileReply(200, strange))
    assert states(shares) == [("nobody", "read", "given")]
    refusal = FileReply(409, {"code": "shared", "detail": "x", "folders": ["%ff"]})
    monkeypatch.setattr(world.file_servers, "ask", lambda *_: refusal)
    with pytest.raises(Conflict):
        shares.rename(ALICE, "storage/data", "new")
    assert folder.exists()


# A site that has names checked


@pytest.fixture
def checking(tmp_path: Path) -> World:
    settings = make_settings(tmp_path)
    files = settings.files.model_copy(update={"check_names": True})
    return make_world(settings.model_copy(update={"files": files}))


def test_a_mistyped_name_is_refused_where_the_site_has_names_checked(checking: World) -> None:
    (checking.file_servers.home("alice") / "storage" / "data").mkdir()
    shares = checking.services.shares
    for kind in (USER, GROUP):
        with pytest.raises(InvalidRequest) as refused:
            shares.share(ALICE, ShareKey("alice", "data", kind, "n0-such"), "read")
        error = refused.value.errors[0]
        assert (error.field, error.message) == ("name", f"There is no {kind} of this name.")
    assert states(shares) == []
    shares.share(ALICE, REAL, "read")
    shares.share(ALICE, replace(REAL, kind=GROUP, name="daemon"), "read")
    assert len(states(shares)) == 2


def test_an_account_that_was_deleted_since_leaves_the_folder_usable(checking: World) -> None:
    (checking.file_servers.home("alice") / "storage" / "data").mkdir()
    gone = FolderShare(ShareKey("alice", "data", "user", "n0-such"), "read", checking.clock())
    checking.systems.stores.shares.put(gone, 9)  # it is unfinished
    found, _ = checking.services.shares.of_folder(ALICE, "data")
    assert [share.state for share in found] == [ShareState.GIVEN]


# Who loses a folder


ORDERS = [
    {"kind": "delete", "items": ["storage/data"]},
    {"kind": "delete", "items": ["home/file", "home/storage/data"]},
    {"kind": "move", "items": ["storage/data"], "to": "home"},
    {"kind": "copy", "items": ["home/data"], "to": "storage", "on_conflict": "replace"},
]


@pytest.mark.parametrize("order", ORDERS)
def test_nobody_loses_a_folder_before_its_owner_knows(
    world: World, shares: FolderShares, folder: Path, order: dict[str, object]
) -> None:
    (folder / "kept").touch()
    if order["kind"] == "copy":
        (folder.parents[1] / "data").mkdir()
    shares.share(ALICE, REAL, "write")
    shares.share(ALICE, ShareKey("alice", "data", "group", "daemon"), "read")
    for number, (owner, name, mount, state) in enumerate(
        (
            ("alice", "mine", "data", State.PENDING),
            ("alice", "over", "data", State.FINISHED),
            ("bob", "his", "alice/data", State.PENDING),
            ("bob", "other", "data", State.PENDING),
            ("bob", "free", "alice/free", State.PENDING),
        )
    ):
        session = ended_session(
            id=f"{number}" * 32, owner=owner, name=name, state=state, mounts=[{"folder": mount}]
        )
        world.store.add([session], None, "", {})
    with pytest.raises(FolderShared) as refused:
        shares.operate(ALICE, order)
    assert refused.value.text == (
        "“data” is shared with nobody (may change it) and the group daemon (may read it), who lose "
        "it. “data” is mounted in your live session mine and 1 live session of bob. "
        "Confirm that their access shall end."
    )
    assert refused.value.field == "end_shares"
    assert (folder / "kept").exists()
    assert len(states(shares)) == 2
    shares.operate(ALICE, order, end_shares=True)
    assert states(shares) == []


def test_uses_of_a_folder_and_of_what_is_in_it(shares: FolderShares, folder: Path) -> None:
    (folder.parent / "free").mkdir()
    shares.share(ALICE, REAL, "read")
    whole, part = (shares.uses(ALICE, f"storage/data{end}") for end in ("", "/sub/file"))
    assert whole is not None
    assert part is not None
    assert whole.text == "“data” is shared with nobody (may read it), who lose it."
    assert whole.renamed == (
        "“data” is shared with nobody (may read it), who find it under its new name."
    )
    assert part.text == (
        "“data” is shared with nobody (may read it): what you delete or move out of it is gone for "
        "them, too."
    )
    free = shares.uses(ALICE, "storage/free")
    assert free is not None
    assert free.text == free.renamed == ""
    for location in ("home/x", "storage", "shared/bob/data", "storage/%ff"):
        assert shares.uses(ALICE, location) is None
    with pytest.raises(NotFound):
        shares.uses(ALICE, "storage/none")
