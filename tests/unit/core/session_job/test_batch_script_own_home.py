"""The batch script of sessions in their owner's own home directory, run by a real bash."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from pathlib import Path

import pytest

from portal.core.launch.mounts import MountPoint
from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import GOLDEN, PLAIN, TEMPLATE
from tests.support.compute_node import MOUNT_POINTS, ComputeNode, empty_folder

OWN = dataclasses.replace(PLAIN, own_storage="/lustre/alice/storage", mounts=MOUNT_POINTS[1:])
DATA = MountPoint("data", "storage/data", False)


@pytest.fixture
def node(tmp_path: Path) -> ComputeNode:
    return ComputeNode(tmp_path)


def quoted(path: Path) -> str:
    """A path as in the options."""
    return str(path).replace('"', '""')


def places(node: ComputeNode) -> list[str]:
    """The mounts of folders: source, path in the session and mode."""
    options = [line for line in node.seen.read_text().splitlines() if line.startswith("type=bind")]
    ours = ("/cgroup", "kernels.py", "dst=/opt/slipway-proof", str(node.disk))
    return [option for option in options if not any(word in option for word in ours)]


def bind(source: str | Path, place: Path, mode: str = "") -> str:
    """One such mount."""
    src = quoted(source) if isinstance(source, Path) else source
    return f'type=bind,"src={src}","dst={quoted(place)}"{mode}'


def test_the_complete_script() -> None:
    """After an intended change render it again, review the difference, and commit both."""
    golden = GOLDEN / "session-own-home.sh"
    assert render_script(OWN, TEMPLATE) == golden.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", str(golden)], check=True)


def test_the_home_is_the_users_own_and_slipways_folder_is_hidden(node: ComputeNode) -> None:
    look = f'ls -A "$session" > {node.seen}.session'
    code, log = node.run((), look, own_storage="storage")
    assert (code, log) == (0, "")
    options = node.seen.read_text().splitlines()
    assert options[options.index("--home") + 1] == f"{node.home}:{node.home}"
    assert places(node) == [bind(empty_folder(node), node.home / ".slipway", ",ro")]
    assert Path(f"{node.seen}.session").read_text().split() == ["kernels.py", "nothing", "tmp"]
    assert "SLIPWAY_HOME=persistent" in options
    assert "SLIPWAY_FILES=" in options


def test_nothing_is_left_in_the_home_and_nothing_of_it_deleted(node: ComputeNode) -> None:
    (node.home / "storage" / "link").symlink_to(node.home)
    leave = (
        f'ln -s "$PWD" {node.disk}/*/tmp/home && ln -s "$PWD/storage" "$session/link"\n'
        'mkdir -p "$session/home" && ln -s "$PWD" "$session/home/again"'
    )
    before = sorted(node.home.rglob("*"))
    points = (DATA, MountPoint("link", "storage/link", False))
    assert node.run(points, leave, own_storage="storage")[0] == 0
    assert not node.session.exists()
    left = set(node.home.rglob("*")) - set(before)
    assert left == {node.home / ".slipway" / "ssh"}
    assert (node.home / "storage" / "data" / "kept").read_text() == "treasure"


def test_a_foreign_mount_below_the_session_is_not_deleted(node: ComputeNode) -> None:
    mount = 'mkdir "$session/home" && mount --bind "$PWD" "$session/home"'
    assert node.run((), mount, namespace=":", own_storage="storage")[0] == 0
    assert (node.home / "storage" / "data" / "kept").read_text() == "treasure"


def test_chosen_folders_need_a_mount_only_to_be_read_only(node: ComputeNode) -> None:
    hidden = bind(empty_folder(node), node.home / ".slipway", ",ro")
    data = node.home / "storage" / "data"
    for points, more in (
        ((DATA, MountPoint("home", ".", False)), []),
        ((MountPoint("data", "storage/data", True),), [bind(data, data, ",ro")]),
    ):
        node.session.mkdir(exist_ok=True)
        (node.session / "spec.json").write_text("{}\n")
        assert node.run(points, own_storage="storage")[0] == 0
        assert places(node) == [hidden, *more]


def test_a_home_with_two_paths_has_both_and_read_only_applies_to_both(
    node: ComputeNode, tmp_path: Path
) -> None:
    node.name = tmp_path / "alice"
    node.name.symlink_to(node.home)
    assert node.run((MountPoint("data", "storage/data", True),), own_storage="storage")[0] == 0
    options = node.seen.read_text().splitlines()
    assert options[options.index("--home") + 1] == f"{node.home}:{node.name}"
    data = node.home / "storage" / "data"
    assert places(node) == [
        bind(empty_folder(node), node.name / ".slipway", ",ro"),
        bind(node.home, node.home),
        bind(empty_folder(node), node.home / ".slipway", ",ro"),
        bind(data, node.name / "storage" / "data", ",ro"),
        bind(data, data, ",ro"),
    ]


def test_storage_elsewhere_appears_at_its_path(node: ComputeNode, tmp_path: Path) -> None:
    far = tmp_path / "lustre"
    (far / "maps").mkdir(parents=True)
    point = MountPoint("maps", f"{far}/maps", True)
    assert node.run((point,), own_storage=str(far))[0] == 0
    assert places(node)[1:] == [bind(far, far), bind(far / "maps", far / "maps", ",ro")]
    assert "SLIPWAY_FILES=/" in node.seen.read_text().splitlines()


def test_storage_that_is_a_link_has_both_paths(node: ComputeNode, tmp_path: Path) -> None:
    far, link = tmp_path / "far", tmp_path / "link"
    (far / "maps").mkdir(parents=True)
    link.symlink_to(far)
    point = MountPoint("maps", f"{link}/maps", True)
    assert node.run((point,), own_storage=str(link))[0] == 0
    assert places(node)[1:] == [
        bind(far, link),
        bind(far, far),
        bind(far / "maps", link / "maps", ",ro"),
        bind(far / "maps", far / "maps", ",ro"),
    ]


def test_storage_that_the_user_does_not_have_is_left_out(node: ComputeNode, tmp_path: Path) -> None:
    assert node.run((), own_storage=str(tmp_path / "none"))[0] == 0
    assert len(places(node)) == 1


def test_storage_cannot_be_a_link_into_the_nodes_system(node: ComputeNode) -> None:
    (node.home / "other").symlink_to("/etc")
    assert node.run((), own_storage="other")[0] == 0
    assert len(places(node)) == 1


def test_a_link_to_elsewhere_leads_to_the_same_place(node: ComputeNode, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (node.home / "storage" / "linked").symlink_to(tmp_path / "far")
    point = MountPoint("linked", "storage/linked", False)
    assert node.run((point,), own_storage="storage")[0] == 0
    assert places(node)[1:] == [bind(tmp_path / "far", tmp_path / "far")]


def test_a_link_above_the_home_does_not_reveal_slipways_folder(
    node: ComputeNode, tmp_path: Path
) -> None:
    (node.home / "storage" / "above").symlink_to(tmp_path)
    point = MountPoint("above", "storage/above", False)
    assert node.run((point,), own_storage="storage")[0] == 0
    assert places(node)[1:] == [
        bind(tmp_path, tmp_path),
        bind(empty_folder(node), node.home / ".slipway", ",ro"),
    ]


def test_kernels_are_guarded_without_a_file_in_the_home(node: ComputeNode) -> None:
    look = f'cp "$session/kernels.py" {node.seen}.py'
    assert node.run((), look, own_storage="storage")[0] == 0
    place = "/usr/local/etc/ipython/ipython_kernel_config.py"
    assert f'"dst={place}",ro' in node.seen.read_text()
    text = Path(f"{node.seen}.py").read_text()
    compile(text, "kernels.py", "exec")
    assert 'runpy.run_path("/opt/slipway/jupyter/kernel.py"' in text


@pytest.mark.parametrize("elsewhere", ["/nowhere", "~alice"])
def test_a_node_with_another_home_says_so(node: ComputeNode, elsewhere: str) -> None:
    node.name = Path(elsewhere)
    code, log = node.run((), own_storage="storage")
    assert (code, log.splitlines()[-1]) == (
        70,
        "Slipway: your home directory cannot be used on n1. Tell the administrators.",
    )
    assert not node.seen.exists()
    assert not node.session.exists()


def test_a_full_home_says_so(node: ComputeNode) -> None:
    """Folders can still be created, as with most quotas, but no file written."""
    small = f"mount -t tmpfs -o size=4k none {shlex.quote(str(node.session))}"
    fill = f"{small} && echo {{}} > {shlex.quote(str(node.session))}/spec.json"
    keep = f"head -c 9999 /dev/zero 2>/dev/null > {shlex.quote(str(node.session))}/full"
    code, log = node.run((), namespace=f"{fill} && {{ {keep}; true; }}", own_storage="storage")
    assert code == 70
    assert "your home directory may be full." in log
