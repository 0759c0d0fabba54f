"""Attacks by one who may write in the same folder: on what is written, and through its name."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from portal.node.file_server.access import posix_acl
from tests.attack.doors import EVERY_DOOR, FILE_DOORS, SOURCES, Answer
from tests.attack.fuzz_shared_folder import fuzz
from tests.attack.shared_place import KINDS, SECRET, Shared, differences, shared_place
from tests.support.client import Json
from tests.support.cluster import Cluster, wait_for

NAME = "report.txt"
CONTENTS = ("save", "put", "put_large", "dav_put", "tus_whole", "tus_pieces", "tus_joined")
"""The doors by which she sends what is written."""
MOVED_OR_COPIED = tuple(door for door in FILE_DOORS if door not in CONTENTS)
TEXT = b"her report\n" * 6000
WRITTEN_AGAIN = 2.5
"""Seconds in which the record of an operation that runs is written again."""
TRIES = 5
"""Saves of each kind; the code of 2026-11-25 lost at the first or second one."""


def in_turn(first: Iterable[str], second: Iterable[str]) -> list[tuple[str, str]]:
    """Each of the first ones with the next of the second ones; the product is in unit tests
    (file_server/test_replacing_exchanged.py, test_contents.py, test_roots.py).
    """
    return list(zip(first, itertools.cycle(second), strict=False))


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> Iterator[Shared]:
    """Two accounts with folders in which both may write."""
    with shared_place(cluster) as place:
        yield place


@pytest.fixture(autouse=True)
def outside(shared: Shared) -> Iterator[dict[str, Json]]:
    """What is outside of the shared folders; it is restored, and the folders are emptied."""
    before = shared.outside()
    yield before
    if differences(before, shared.outside()):
        shared.restore(before)
    shared.clear()


def target_of(shared: Shared, trick: str) -> dict[str, str]:
    """What he puts in the place of her unfinished file."""
    home = shared.she.home
    return {
        "home": {"kind": "link", "target": home},
        "secret": {"kind": "link", "target": f"{home}/canaries/secret"},
        "her_file": {"kind": "rename", "target": "hers.txt"},
        "her_folder": {"kind": "exchange", "target": "hers"},
    }[trick]


_HERS = """
cd {home}/held && rm -rf * && mkdir -p new/hers/deep && cd new
for file in hers.txt hers/file hers/deep/file; do echo private > $file; done
chmod -R u=rwX,go= . && chown -R {user}:{user} .
ln hers.txt hers/file ..; ln hers/deep/file ../deep
stat -c %i hers hers/deep
rm -rf {path}/hers {path}/hers.txt; mv hers hers.txt {path}/; cd ..; rmdir new
"""


@dataclass
class Hers:
    """A private file and a private folder of hers in a shared folder.

    He may rename both, and delete the file, but change neither nor delete what is in the folder.
    """

    shared: Shared
    kind: str
    folders: list[int] = field(default_factory=list)
    """Inodes."""

    def lay(self) -> dict[str, Json]:
        """Put them there anew; returns what they are like."""
        she, path = self.shared.she, self.shared.path(self.kind)
        script = _HERS.format(path=path, user=she.account.uid, home=she.home)
        self.folders = [int(word) for word in self.shared.cluster.shell("login", script).split()]
        return self.now()

    def now(self) -> dict[str, Json]:
        """What they are like now, whatever they are called, and what is outside."""
        held, path = f"{self.shared.she.home}/held", self.shared.path(self.kind)
        about = self.shared.outside(folder=path, inodes=self.folders)
        for name, status in about.items():
            if name.isdigit() or name.startswith(held):
                status.pop("changed", None)  # by renames
            if name.isdigit():
                status.pop("modified")
        about[f"{held}/hers.txt"].pop("links")  # he may delete it
        return about


def attack(shared: Shared, kind: str, door: str, trick: str) -> None:
    """She writes several times while he plays a trick; fails with what has changed."""
    path = shared.path(kind)
    private = Hers(shared, kind)
    before = private.lay()
    settings: Json = {"folder": path, **target_of(shared, trick), "bait": NAME}
    if door == "tus_pieces":  # an upload looks at its part once more before the last piece
        settings["size"] = len(TEXT)
    with shared.meddling("trick", settings) as report:
        for number in range(1, TRIES + 1):
            shared.wait_for_bait(f"{path}/{NAME}")
            EVERY_DOOR[door](shared.she.doors, shared.location(kind), NAME, TEXT)
            changed = differences(before, private.now())
            assert not changed, f"by {door} number {number}: {changed}"
            if trick.startswith("her_"):
                before = private.lay()
    assert report["rounds"] > 100, "he has hardly been there"


@pytest.mark.parametrize(
    ("door", "trick"),
    [
        *in_turn(EVERY_DOOR, ("home", "her_folder")),
        *in_turn(CONTENTS, ("secret", "her_file")),
    ],
)
def test_p1_what_he_puts_in_the_place_of_her_unfinished_file_stays_as_it_is(
    shared: Shared, door: str, trick: str
) -> None:
    """P1: modes, lists, attributes and times of the old file were given to a name."""
    attack(shared, "his", door, trick)


@pytest.mark.parametrize(
    ("kind", "door"), in_turn([kind for kind in KINDS if kind != "his"], ("save", "tus_pieces"))
)
def test_p1_in_every_kind_of_folder(shared: Shared, door: str, kind: str) -> None:
    """P1: in her own folder, a group's, everybody's, and one of his with the sticky bit."""
    attack(shared, kind, door, "home")


# P2: what a file of his leaves behind when she replaces it


def about(shared: Shared, kind: str, name: str) -> Json:
    """What a file of the folder is like."""
    path = f"{shared.path(kind)}/{name}"
    looked: Json = shared.look(trees=[path])["trees"][path]
    return looked


def fresh(shared: Shared, kind: str) -> Json:
    """What a file is like that she makes there herself."""
    path = f"{shared.path(kind)}/fresh.txt"
    shared.cluster.run("login", "touch", path, user=shared.she.name)
    return about(shared, kind, "fresh.txt")


def permitted(status: Json) -> dict[str, int]:
    """Whom a file's list names, and what each may at most; execution does not count."""
    data = status["attributes"].get(posix_acl.ACCESS)
    if data is None:
        return {}
    entries = posix_acl.parse(bytes.fromhex(data))
    mask = 7 if entries.mask is None else entries.mask
    return {str(key): value & mask & ~posix_acl.EXECUTE for key, value in entries.named.items()}


def check_plain(status: Json, plain: Json) -> None:
    """Fail if a file permits more than what its folder gives to a new one."""
    mode, usual = int(status["mode"], 8), int(plain["mode"], 8)
    assert not mode & 0o7000, f"{status['mode']}: special bits"
    assert not mode & ~usual & 0o022, f"{status['mode']} instead of {plain['mode']}"
    assert status["flags"] == plain["flags"]
    usually = permitted(plain)
    for key, value in permitted(status).items():
        assert not value & ~usually.get(key, 0), f"{key} may {value}"
    assert "security.capability" not in status["attributes"]


def put_over_his(shared: Shared, door: str, kind: str) -> tuple[Json, bool]:
    """She puts her file in the place of his, which has mode 6777 and capabilities.

    Returns what it is like, and whether he could write into it afterwards.
    """
    path = shared.path(kind)
    with shared.meddling("hold", {"folder": path, "bait": NAME}) as report:
        shared.wait_for_bait(f"{path}/{NAME}")
        give_capability = f"setcap cap_net_raw+ep {path}/{NAME} 2>/dev/null || true"
        shared.cluster.shell("login", give_capability)
        answer = FILE_DOORS[door](shared.she.doors, shared.location(kind), NAME, TEXT)
        assert answer.status < 300, answer.body
        status = about(shared, kind, NAME)
    return status, bool(report["written"])


PLAIN_KINDS = [kind for kind in KINDS if kind != "sticky"]


@pytest.mark.parametrize(("door", "kind"), in_turn(MOVED_OR_COPIED, PLAIN_KINDS))
def test_p2_her_file_in_the_place_of_his_has_none_of_his_permissions(
    shared: Shared, door: str, kind: str
) -> None:
    """P2: his mode 6777 and his list were hers, and he wrote a program into her file."""
    plain = fresh(shared, kind)
    status, written = put_over_his(shared, door, kind)
    assert status["owner"][0] == shared.she.account.uid
    check_plain(status, plain)
    his_share = kind in ("his", "hers")  # he may write there what she makes
    assert his_share or not written
    if not his_share:
        assert about(shared, kind, NAME)["contents"] == status["contents"]


@pytest.mark.parametrize(("door", "kind"), in_turn(CONTENTS, PLAIN_KINDS))
def test_p2_what_she_writes_into_his_file_gives_it_nothing_of_hers(
    shared: Shared, door: str, kind: str
) -> None:
    """It stays his, and loses what the kernel takes from a file that somebody else writes."""
    status, _ = put_over_his(shared, door, kind)
    assert status["owner"][0] == shared.he.account.uid
    assert not int(status["mode"], 8) & 0o6000, status["mode"]
    assert "security.capability" not in status["attributes"]


@pytest.mark.parametrize(("door", "mode"), in_turn(CONTENTS, ("600", "640", "755")))
def test_p2_her_own_file_keeps_its_permissions(shared: Shared, door: str, mode: str) -> None:
    """A private file stays private, and a program one."""
    path = f"{shared.path('world')}/{NAME}"
    for special in ("", "6"):
        make = f"echo old > {path}; chmod {special}{mode} {path}"
        shared.cluster.shell("login", make, user=shared.she.name)
        answer = FILE_DOORS[door](shared.she.doors, shared.location("world"), NAME, TEXT)
        assert answer.status < 300, answer.body
        assert about(shared, "world", NAME)["mode"] == f"100{mode}"


@pytest.mark.parametrize(
    ("door", "owner"),
    [
        *itertools.product(("dav", "op", "dav_tree", "op_tree"), ("she", "he")),
        *itertools.product(("dav_across", "op_across"), ("she",)),
    ],
)
def test_p2_no_copy_has_special_bits(shared: Shared, door: str, owner: str) -> None:
    """P2: not even of her own program, and of his file no permission for everybody."""
    source, across = ("storage/world/from", door.endswith("across"))
    person = getattr(shared, owner)
    folder = f"/dev/shm/{shared.she.name}" if across else f"{shared.path('world')}/from"
    make = f"mkdir -p {folder}; echo x > {folder}/{NAME}; chmod 6777 {folder} {folder}/{NAME}"
    shared.cluster.shell("login", make, user=person.name)
    doors, to = shared.she.doors, "home/incoming"
    if across:
        source = "storage/across"
    item = source if door.endswith("tree") else f"{source}/{NAME}"
    kind = "move" if across else "copy"
    if door.startswith("op"):
        answer = doors.operate(kind, item, to)
        assert answer.json["state"] == "done", answer.body
    else:
        headers = {"Destination": f"/data/dav/{to}/{item.rpartition('/')[2]}"}
        answer = doors.client.data(kind.upper(), f"dav/{item}", None, headers)
        assert answer.status < 300, answer.body
    looked = shared.look(trees=[f"{shared.she.home}/incoming"])["trees"]
    shared.cluster.shell("login", f"rm -rf {shared.she.home}/incoming/*")
    modes = {path: int(status["mode"], 8) for path, status in looked.items() if path.endswith(NAME)}
    assert len(modes) == 1
    for path, mode in modes.items():
        assert not mode & 0o7000, f"{path}: {mode:o}"
        assert owner == "she" or not mode & 0o002, f"{path}: {mode:o}"


# Deletions


def begin_to_watch(shared: Shared) -> None:
    """Wait until he watches the folder: his process has made its mark there."""
    wait_for("him", lambda: shared.holds(f"pgrep -u {shared.he.name} -f seconds"))


def copy_tree(shared: Shared, door: str, location: str) -> Answer:
    """Copy or move her folder `tree` there, if there is nothing of that name."""
    doors, source = shared.she.doors, SOURCES
    if door.endswith("across"):
        source = "storage/across"
        refill = f"cp -a {shared.she.home}/sources/tree /dev/shm/{shared.she.name}/"
        shared.cluster.shell("login", refill, user=shared.she.name)
    if door.startswith("op"):
        kind = "move" if door.endswith("across") else "copy"
        return doors.operate(kind, f"{source}/tree", location, "refuse")
    headers = {"Destination": f"/data/dav/{location}/tree"}
    method = "MOVE" if door.endswith("across") else "COPY"
    return doors.client.data(method, f"dav/{source}/tree", None, headers)


@pytest.mark.parametrize(
    ("door", "kind"), in_turn(("op", "op_across", "dav", "dav_across"), ("his", "hers", "group"))
)
def test_what_he_puts_in_the_place_of_an_unfinished_folder_is_not_deleted(
    shared: Shared, door: str, kind: str
) -> None:
    """He takes the name that her copy shall get, too, so that the copy is given up."""
    path, location = shared.path(kind), shared.location(kind)
    for number in range(1, TRIES + 1):
        shared.clear()
        private = Hers(shared, kind)
        before = private.lay()
        trick = {"folder": path, "kind": "exchange", "target": "hers", "block": "tree"}
        with shared.meddling("trick", trick):
            begin_to_watch(shared)
            copy_tree(shared, door, location)
        changed = differences(before, private.now())
        assert not changed, f"copy number {number}: {changed}"


@pytest.mark.parametrize("kind", ["his", "group"])
def test_what_he_puts_in_the_place_of_a_cancelled_copy_is_not_deleted(
    shared: Shared, kind: str
) -> None:
    path, location = shared.path(kind), shared.location(kind)
    for number in range(1, TRIES + 1):
        shared.clear()
        private = Hers(shared, kind)
        before = private.lay()
        trick = {"folder": path, "kind": "exchange", "target": "hers"}
        with shared.meddling("trick", trick):
            begin_to_watch(shared)
            answer = shared.she.doors.begin_operation("copy", f"{SOURCES}/tree", location)
            shared.she.doors.client.control("DELETE", f"operations/{answer.json['id']}")
            shared.she.doors.ended(answer)
        changed = differences(before, private.now())
        assert not changed, f"copy number {number}: {changed}"


@pytest.mark.parametrize("kind", ["his", "group"])
def test_what_he_puts_in_the_place_of_a_replaced_folder_is_not_deleted(
    shared: Shared, kind: str
) -> None:
    """The old folder gets a name that he knows beforehand, and is deleted under that name."""
    path, location = shared.path(kind), shared.location(kind)
    fill = f"mkdir -p {path}/tree && cd {path}/tree && touch $(seq 500)"
    for number in range(1, TRIES + 1):
        shared.clear()
        private = Hers(shared, kind)
        before = private.lay()
        shared.cluster.shell("login", fill, user=shared.she.name)
        trick = {"folder": path, "kind": "exchange", "target": "hers", "ending": "-2"}
        with shared.meddling("trick", trick):
            begin_to_watch(shared)
            shared.she.doors.operate("copy", f"{SOURCES}/tree", location, "replace")
        changed = differences(before, private.now())
        assert not changed, f"copy number {number}: {changed}"


# First out of his reach, since he may exchange it at any moment.
PUT_BACK = (
    "mv -T alone aside && "
    "if [ -e aside/deep ]; then rm -rf hers; mv aside hers; else rm -rf aside; fi"
)


def test_a_new_folder_is_not_mistaken_for_what_he_puts_in_its_place(shared: Shared) -> None:
    """He exchanges a folder between its creation and its opening, which needs its name again."""
    path, location = shared.path("his"), shared.location("his")
    private = Hers(shared, "his")
    shared.cluster.shell("login", f"chmod 755 {shared.she.home}/sources/tree")
    headers = {"Destination": f"/data/dav/{location}/alone", "Depth": "0"}
    before = private.lay()
    order = {"folder": path, "name": "alone", "target": "hers"}
    with shared.meddling("snatch", order) as report:
        begin_to_watch(shared)
        for number in range(1, 101):
            shared.she.doors.client.data("COPY", f"dav/{SOURCES}/tree", None, headers)
            changed = differences(before, private.now()) if number % 25 == 0 else []
            assert not changed, f"copy number {number}: {changed}"
            shared.cluster.shell("login", f"cd {path} && {PUT_BACK}", check=False)
    assert report["played"]


def test_a_new_server_deletes_nothing_but_what_the_last_one_has_left(shared: Shared) -> None:
    """He gives her own folder the name of something unfinished; her server is killed meanwhile."""
    path, location = shared.path("his"), shared.location("his")
    private = Hers(shared, "his")
    before = private.lay()
    grow = f"cd {shared.she.home}/sources && mkdir -p big && cd big && touch $(seq 60000)"
    shared.cluster.shell("login", grow, user=shared.she.name)
    answer = shared.she.doors.begin_operation("copy", f"{SOURCES}/big", location)
    number = answer.json["id"]

    def recorded() -> bool:
        """Whether its record is there, by which a later server knows it."""
        look = f"find {shared.she.home}/.slipway -name '*-{number}.json' | grep ."
        return shared.holds(f"{look} && ls {path}/.slipway-{number}-1")

    try:
        wait_for("its record", recorded, 10, 0.05)
        time.sleep(WRITTEN_AGAIN)
        move = f"mv {path}/hers {path}/.slipway-{number}-7"
        shared.cluster.shell("login", move, user=shared.he.name)
        shared.end_servers()
        ask = shared.she.doors.client.control
        wait_for("a new server", lambda: ask("GET", "operations").status == 200)
        ended = ask("GET", f"operations/{number}")
        assert ended.json["state"] == "interrupted", ended.body
        wait_for(
            "its rest is deleted", lambda: shared.holds(f"[ ! -e {path}/.slipway-{number}-1 ]")
        )
        changed = differences(before, private.now())
        assert not changed, changed
    finally:
        shared.cluster.shell("login", f"rm -rf {shared.she.home}/sources/big")


# Links that he makes in her own folder, which is in the same storage area as her other ones


LINKS = {
    "beside": "../other/file",
    "absolute": "{home}/storage/other/file",
    "above": "../../canaries/secret",
    "to_run": "../../.bashrc",
}


@pytest.mark.parametrize(("door", "link"), in_turn(CONTENTS, LINKS))
def test_his_link_does_not_lead_what_she_writes_to_another_file(
    shared: Shared, outside: dict[str, Json], door: str, link: str
) -> None:
    """Locations may begin at her home, where a link to any file of hers stays inside."""
    target = LINKS[link].format(home=shared.she.home)
    make = f"rm -f {NAME}; ln -s {target} {NAME}"
    shared.cluster.shell("login", f"cd {shared.path('hers')} && {make}", user=shared.he.name)
    for location in (shared.location("hers"), f"home/{shared.location('hers')}"):
        FILE_DOORS[door](shared.she.doors, location, NAME, TEXT)
        assert not differences(outside, shared.outside()), location


# What else she does in such a folder


def test_nothing_that_she_does_there_touches_or_reads_what_is_outside(
    shared: Shared, outside: dict[str, Json]
) -> None:
    """Archives, searches, counts, permissions, deletions, while he exchanges names."""
    targets = [shared.she.home, f"{shared.she.home}/canaries/secret", f"{shared.she.home}/.ssh"]
    for kind in KINDS:
        path, location = shared.path(kind), shared.location(kind)
        names = (NAME, "folder", "tree")
        order = {"folders": [path], "names": names, "targets": targets, "seed": 1}
        with shared.meddling("anything", order) as report:
            for number in range(3):
                for name in names:
                    shared.she.doors.put(location, name, TEXT)
                    for act, call in shared.she.doors.others(location, name).items():
                        answer = call()
                        assert SECRET.encode() not in answer.body, f"{kind}: {act}"
                        assert answer.status != 500, f"{kind}: {act}: {answer.body!r}"
                changed = differences(outside, shared.outside())
                assert not changed, f"{kind}, round {number}: {changed}"
        assert report["rounds"] > 100, "he has hardly been there"
        shared.clear()


def test_a_minute_of_everything(cluster: Cluster) -> None:
    """The fuzz, of which `python -m tests.attack.fuzz_shared_folder` does more."""
    tally = fuzz(cluster, 60, seed=30)
    tally.print(30)
    assert not tally.races, list(tally.lost)
    assert sum(tally.doors.values()) > 300
    assert tally.meddled["rounds"] > 10_000
