"""Mounts: valid requests, and how the batch script carries them out."""

from __future__ import annotations

import csv
import dataclasses
import getpass
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.launch.mounts import Mount, MountPoint, mount_points, start_folder, storage_folder
from portal.core.launch.request import parse_launch
from portal.core.session_job.batch_script import render_script
from portal.errors import InvalidRequest
from portal.node.common.folder_name import HOME
from tests.support.batch_scripts import GOLDEN, PLAIN, TEMPLATE
from tests.support.compute_node import MOUNT_POINTS, ComputeNode, empty_folder
from tests.support.sessions import VALID_REQUEST

MOUNTS = dataclasses.replace(PLAIN, mounts=MOUNT_POINTS)


def errors(mounts: object) -> dict[str, str]:
    """The fields named by the error, with its text."""
    with pytest.raises(InvalidRequest) as caught:
        parse_launch({**VALID_REQUEST, "mounts": mounts})
    return {error.field: error.message for error in caught.value.errors}


def test_short_and_long_form() -> None:
    asked = ["home", {"folder": "data", "read_only": True}, {"folder": "maps-2.1"}]
    assert parse_launch({**VALID_REQUEST, "mounts": asked}).mounts == (
        Mount(folder="home"),
        Mount(folder="data", read_only=True),
        Mount(folder="maps-2.1"),
    )
    assert parse_launch(VALID_REQUEST).mounts == ()


@pytest.mark.parametrize(
    ("mounts", "field"),
    [
        ("data", "mounts"),
        (None, "mounts"),
        ({"folder": "data"}, "mounts"),
        (["data", {"folder": "data", "read_only": True}], "mounts"),
        ([f"n{number}" for number in range(21)], "mounts"),
        ([7], "mounts.0"),
        ([None], "mounts.0"),
        ([[]], "mounts.0"),
        ([{}], "mounts.0"),
        (["data", ""], "mounts.1"),
        (["data", ".ssh"], "mounts.1"),
        (["../bob"], "mounts.0"),
        (["a/b/c"], "mounts.0"),
        (["../b"], "mounts.0"),
        ([".A/b"], "mounts.0"),
        (["bob/"], "mounts.0"),
        (["alice-x", "alice/x", "x"], "mounts"),
        (["/etc"], "mounts.0"),
        (["a\n"], "mounts.0"),
        (["a\x00"], "mounts.0"),
        (["x" * 256], "mounts.0"),
        (["b b/x"], "mounts.0"),
        ([{"folder": "data", "read_only": "yes"}], "mounts.0"),
        ([{"folder": "data", "owner": "bob"}], "mounts.0"),
        ([{"folder": 1}], "mounts.0"),
    ],
)
def test_each_wrong_mount_is_named(mounts: object, field: str) -> None:
    found = errors(mounts)
    assert set(found) == {field}
    assert found[field]


def test_error_texts() -> None:
    assert errors(["data", "home", "data"]) == {"mounts": "the folder data is named twice"}
    assert errors(["a"] * 21) == {"mounts": "these are too many; there may be 20"}
    assert errors([{"folder": "a", "mode": 1}]) == {"mounts.0": "mode: there is no such field"}


def test_paths_of_folders() -> None:
    mounts = (Mount(folder=HOME), Mount(folder="data", read_only=True))
    assert mount_points("alice", mounts, "storage/") == (
        MountPoint("home", ".", False),
        MountPoint("data", "storage/data", True),
    )
    (_, data) = mount_points("alice", mounts, "/lustre/{user}/storage")
    assert data.source == "/lustre/alice/storage/data"


@given(st.text() | st.text("abc./-_ \n'\"$"))
def test_every_offered_folder_can_be_requested(name: str) -> None:
    try:
        parse_launch({**VALID_REQUEST, "mounts": [name]})
        taken = name != HOME and "/" not in name  # OWNER/FOLDER is somebody else's
    except InvalidRequest:
        taken = False
    assert storage_folder(name, "/home/alice/storage").mountable == taken


def test_the_complete_script() -> None:
    """After an intended change render it again, review the difference, and commit both."""
    golden = GOLDEN / "session-mounts.sh"
    assert render_script(MOUNTS, TEMPLATE) == golden.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", str(golden)], check=True)


@pytest.mark.parametrize("part", ["name", "source", "owner"])
@pytest.mark.parametrize("value", ["a b", "$(id)", "a;b", "'", '"', "ä", "`id`", "\\", "*", "!x"])
def test_no_shell_syntax_can_be_injected(part: str, value: str) -> None:
    """Each value stays one word of the line that mounts it."""
    changed: dict[str, Any] = {"owner": "bob", part: value}
    point = dataclasses.replace(MOUNT_POINTS[1], **changed)
    script = render_script(dataclasses.replace(PLAIN, mounts=(point,)), TEMPLATE)
    (line,) = (line for line in script.splitlines() if line.startswith("mount_folder "))
    words = [point.name, f"~{point.owner}/{point.source}", "", point.owner]
    assert shlex.split(line) == ["mount_folder", *words]
    changed[part] = f"{value}\n"
    bad = dataclasses.replace(PLAIN, mounts=(dataclasses.replace(point, **changed),))
    with pytest.raises(ValueError, match="mounts"):
        render_script(bad, TEMPLATE)


@pytest.fixture
def node(tmp_path: Path) -> ComputeNode:
    return ComputeNode(tmp_path)


def test_the_container_gets_the_mounts(node: ComputeNode) -> None:
    data = MountPoint("data", "storage/data", False)
    look = f'ls -A "$session/home" > {node.seen}.home'
    assert node.run((data, MountPoint("home", ".", True)), look)[0] == 0
    quoted = str(node.home).replace('"', '""')
    assert node.binds() == [
        f'type=bind,"src={quoted}/storage/data","dst=/home/alice/data"',
        f'type=bind,"src={quoted}","dst=/home/alice/home",ro',
        f'type=bind,"src={empty_folder(node)}","dst=/home/alice/home/.slipway",ro',
    ]
    assert Path(f"{node.seen}.home").read_text().split() == ["data", "home"]
    assert not node.session.exists()
    assert (node.home / "storage" / "data" / "kept").exists()


def test_a_folder_may_have_any_name(node: ComputeNode) -> None:
    """As far as sessions can have it; Apptainer reads the options as CSV."""
    names = [
        "über",
        "데이터",
        "a b",
        "Data-2 (2)",
        " a ",
        "-rf",
        "~x",
        "$(id)",
        'a"b,c:d',
        "\\n'*",
        "#1",
    ]
    points = [MountPoint(name, f"storage/{name}", False) for name in names]
    for name in names:
        assert storage_folder(name, "").mountable
        (node.home / "storage" / name).mkdir()
    code, log = node.run(tuple(points))
    assert (code, log) == (0, "")
    fields = [next(csv.reader([bind])) for bind in node.binds()]
    expected = [
        ["type=bind", f"src={node.home}/storage/{name}", f"dst=/home/alice/{name}"]
        for name in names
    ]
    assert fields == expected


def test_a_link_to_a_folder_is_a_folder(node: ComputeNode, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (node.home / "storage" / "linked").symlink_to(tmp_path / "far")
    assert node.run((MountPoint("linked", "storage/linked", False),))[0] == 0
    assert len(node.binds()) == 1


@pytest.mark.parametrize(
    "target", ["/", "/etc", "/usr/share", "/proc", "/dev", "../.slipway", "../.slipway/sessions"]
)
def test_a_link_into_the_nodes_system_or_slipways_folder_is_refused(
    node: ComputeNode, target: str
) -> None:
    (node.home / "storage" / "linked").symlink_to(target)
    code, log = node.run((MountPoint("linked", "storage/linked", False),))
    assert code == 70
    last = log.splitlines()[-1]
    assert last.startswith('Slipway: the folder "linked" leads to /')
    assert last.endswith(", which is neither yours nor storage. Launch without it.")
    assert not node.seen.exists()
    assert not node.session.exists()


def test_the_storage_root_may_not_be_such_a_link_either(node: ComputeNode) -> None:
    (node.home / "elsewhere").symlink_to("/usr")
    code, log = node.run((MountPoint("share", "elsewhere/share", False),))
    assert (code, 'the folder "share" leads to /usr/share' in log) == (70, True)


@pytest.mark.parametrize("read_only", [False, True])
def test_slipways_folder_is_covered_even_through_links(
    node: ComputeNode, tmp_path: Path, read_only: bool
) -> None:
    """The home by a link, and its parents."""
    for name, target, place in (
        ("again", node.home, "again/.slipway"),
        ("above", tmp_path, f"above/{node.home.name}/.slipway"),
    ):
        (node.session / "spec.json").parent.mkdir(parents=True, exist_ok=True)
        (node.session / "spec.json").write_text("{}\n")
        (node.home / "storage" / name).symlink_to(target)
        assert node.run((MountPoint(name, f"storage/{name}", read_only),))[0] == 0
        quoted = place.replace('"', '""')
        assert node.binds()[-1] == (
            f'type=bind,"src={empty_folder(node)}","dst=/home/alice/{quoted}",ro'
        )


@pytest.mark.parametrize("what", ["gone", "a file", "a broken link"])
def test_a_missing_folder_is_named_and_nothing_starts(node: ComputeNode, what: str) -> None:
    place = node.home / "storage" / "maps"
    if what == "a file":
        place.write_text("")
    elif what == "a broken link":
        place.symlink_to("nowhere")
    code, log = node.run((MountPoint("maps", "storage/maps", False),))
    assert code == 70
    assert log.splitlines()[-1] == (
        'Slipway: the folder "maps" no longer exists. Launch without it, or create it again.'
    )
    assert not node.seen.exists()
    assert not node.session.exists()


def test_a_shared_folder_is_found_where_its_owner_has_it(node: ComputeNode, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs" / "data"
    theirs.mkdir(parents=True)
    me = getpass.getuser()
    assert node.run((MountPoint("data", str(theirs), True, me),))[0] == 0
    assert node.binds() == [f'type=bind,"src={theirs}","dst=/home/alice/data",ro']
    status = theirs.stat()
    seen = f"--seen\n{status.st_dev}:{status.st_ino} /home/alice/data\n"
    assert node.seen.read_text().endswith(f"\n--node\nn1\n{seen}"), "the runner compares it"


def test_in_an_own_home_it_is_compared_by_each_of_its_paths(
    node: ComputeNode, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs" / "data"
    theirs.mkdir(parents=True)
    (tmp_path / "by-link").symlink_to("theirs")
    identity = f"{theirs.stat().st_dev}:{theirs.stat().st_ino}"
    for source in (theirs, tmp_path / "by-link" / "data"):
        (node.session / "spec.json").parent.mkdir(parents=True, exist_ok=True)
        (node.session / "spec.json").write_text("{}\n")
        point = MountPoint("data", str(source), True, getpass.getuser())
        assert node.run((point,), own_storage="storage")[0] == 0
        words = node.seen.read_text().splitlines()
        places = [w.removeprefix(f"{identity} ") for w in words if w.startswith(f"{identity} ")]
        assert places == list(dict.fromkeys([str(theirs), str(source)]))


def test_the_runner_is_told_of_others_folders_only(node: ComputeNode) -> None:
    assert node.run((MountPoint("data", "storage/data", False),))[0] == 0
    assert node.seen.read_text().endswith("\n--node\nn1\n")


@pytest.mark.parametrize("what", ["gone", "a link", "another owner's", "of nobody"])
def test_what_is_no_longer_shared_is_named(node: ComputeNode, tmp_path: Path, what: str) -> None:
    theirs, owner = tmp_path / "theirs" / "data", getpass.getuser()
    theirs.parent.mkdir()
    if what == "a link":
        theirs.symlink_to(node.home / "storage" / "data")
    elif what != "gone":
        theirs.mkdir()
        owner = "nobody" if what == "another owner's" else "n0-such"
    code, log = node.run((MountPoint("x", str(theirs), False, owner),))
    assert code == 70
    assert log.splitlines()[-1] == (
        f'Slipway: the folder "{owner}/data" is no longer shared with you. Launch without it.'
    )
    assert not node.seen.exists()


def test_others_folders_get_the_names_that_own_ones_leave() -> None:
    mounts = parse_launch(
        {
            **VALID_REQUEST,
            "mounts": ["data", "alice/data", {"folder": "carol/maps", "read_only": True}],
        }
    ).mounts
    assert mount_points("bob", mounts, "storage") == (
        MountPoint("data", "storage/data", False),
        MountPoint("alice-data", "storage/data", False, "alice"),
        MountPoint("maps", "storage/maps", True, "carol"),
    )
    assert mount_points("bob", mounts[1:], "/srv/{user}")[0] == MountPoint(
        "data", "/srv/alice/data", False, "alice"
    )
    assert start_folder(mounts[1:]) == "data"
    assert start_folder(mounts[1:], "storage") == ""


def test_the_clean_up_does_not_follow_links_out_of_the_session(node: ComputeNode) -> None:
    """Whatever a session leaves in its home, deleting it affects no files elsewhere."""
    leave = (
        'ln -s "$PWD/storage/data" "$session/home/link"\n'
        'ln -s "$PWD/storage" "$session/tmp/link"\n'
        'rmdir "$session/home/data" && ln -s "$PWD/storage/data" "$session/home/data"'
    )
    assert node.run((MountPoint("data", "storage/data", False),), leave)[0] == 0
    assert not node.session.exists()
    assert (node.home / "storage" / "data" / "kept").read_text() == "treasure"


def test_read_only_applies_to_mounts_below(node: ComputeNode) -> None:
    inner = node.home / "storage" / "data" / "in ner"
    inner.mkdir()
    points = (MountPoint("data", "storage/data", True), MountPoint("home", ".", False))
    before = f"mount -t tmpfs none {shlex.quote(str(inner))}"
    assert node.run(points, namespace=before)[0] == 0
    quoted = str(node.home).replace('"', '""')
    assert node.binds() == [
        f'type=bind,"src={quoted}/storage/data","dst=/home/alice/data",ro',
        f'type=bind,"src={quoted}/storage/data/in ner","dst=/home/alice/data/in ner",ro',
        f'type=bind,"src={quoted}","dst=/home/alice/home"',
        f'type=bind,"src={empty_folder(node)}","dst=/home/alice/home/.slipway",ro',
    ]


def test_foreign_mounts_in_the_session_are_kept(node: ComputeNode) -> None:
    """Slipway creates no such mount; if there is one, its files matter more than a clean end."""
    kept = node.home / "storage" / "data" / "kept"
    mount = 'mount --bind "$PWD/storage/data" "$session/home/data"'
    points = (MountPoint("data", "storage/data", False),)
    assert node.run(points, mount, namespace=":")[0] == 0
    assert kept.read_text() == "treasure"
    assert node.session.exists()


@pytest.mark.parametrize(
    ("mounts", "start"),
    [
        ([], ""),
        (["climate-2026"], "climate-2026"),
        (["home"], "home"),
        (["data", {"folder": "maps", "read_only": True}], "data"),
        ([{"folder": "maps", "read_only": True}], ""),
        (["data", "results"], ""),
    ],
)
def test_apps_start_in_the_only_writable_folder(mounts: list[Any], start: str) -> None:
    assert start_folder(parse_launch({**VALID_REQUEST, "mounts": mounts}).mounts) == start
