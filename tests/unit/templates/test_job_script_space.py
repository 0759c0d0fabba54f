"""The job script's space for temporary files, run by a real bash whose container is a script."""

from __future__ import annotations

import fcntl
import os
import re
import time
from pathlib import Path, PurePosixPath

import pytest

from portal.core.session_job.adoption import PROOF, PROOF_INSIDE
from tests.support.compute_node import ComputeNode


@pytest.fixture
def node(tmp_path: Path) -> ComputeNode:
    return ComputeNode(tmp_path)


def places(node: ComputeNode) -> dict[str, Path]:
    """Folders of temporary files: path in the container, and on the node."""
    found = re.findall(r'type=bind,"src=(.*)","dst=(/tmp|/var/tmp)"$', node.seen.read_text(), re.M)
    return {place: Path(source.replace('""', '"')) for source, place in found}


def test_every_path_of_temporary_files_has_the_nodes_space(node: ComputeNode) -> None:
    """Before, /var/tmp was a part of Apptainer's 64 MB, in which our own sockets were, too."""
    write = f"cd {node.disk}/* && stat -c %a . > {node.seen}.mode && touch tmp/x var_tmp/x"
    assert node.run((), write) == (0, "")
    assert sorted(places(node)) == ["/tmp", "/var/tmp"]
    assert {source.parent.parent for source in places(node).values()} == {node.disk}
    assert Path(f"{node.seen}.mode").read_text().strip() == "700"
    assert list(node.disk.iterdir()) == [], "they end with the session"


def test_our_own_files_are_where_nothing_of_the_users_is(node: ComputeNode) -> None:
    assert node.run(())[0] == 0
    options = node.seen.read_text().splitlines()
    assert options[options.index("--scratch") + 1] == "/opt/slipway-run"
    assert options[options.index("--directory") + 1] == "/opt/slipway-run"


def test_the_runners_proof_is_where_the_portal_looks_for_it(node: ComputeNode) -> None:
    """Not with the temporary files, which are on the node."""
    inside = PurePosixPath(PROOF_INSIDE)
    assert node.run(())[0] == 0
    (source,) = re.findall(
        f'type=bind,"src=(.*)","dst={inside.parent}"$', node.seen.read_text(), re.M
    )
    assert Path(source.replace('""', '"'), inside.name) == node.session / PROOF


def test_a_site_s_folder_in_which_others_could_exchange_ours_is_not_used(node: ComputeNode) -> None:
    """Its owner is somebody else, and it is not sticky as /tmp is; so is one that is not there."""
    if os.geteuid() == 0:
        os.chown(node.disk, 65534, 65534)
        node.disk.chmod(0o777)
    else:
        node.disk.rmdir()
    assert node.run(()) == (0, "")
    assert set(places(node)) == {"/tmp", "/var/tmp"}
    assert all(node.disk not in source.parents for source in places(node).values())
    assert all(not source.exists() for source in places(node).values())


def test_what_killed_sessions_have_left_is_deleted_and_nothing_in_use(node: ComputeNode) -> None:
    left, used, new, other = (
        node.disk / name
        for name in (
            "slipway-session.aaaaaaaaaa",
            "slipway-session.bbbbbbbbbb",
            "slipway-session.cccccccccc",
            "of-mine",
        )
    )
    for folder in (left, used, new, other):
        folder.mkdir()
        (folder / "file").touch()
        if folder != new:
            os.utime(folder, (time.time() - 900,) * 2)
    handle = os.open(used, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    # The container lives until the search in the background is over.
    assert (
        node.run((), f"for _ in $(seq 100); do [[ -e {left} ]] || break; sleep 0.1; done")[0] == 0
    )
    os.close(handle)
    assert sorted(node.disk.iterdir()) == sorted([used, new, other])


def test_a_file_system_without_locks_for_folders_is_enough(node: ComputeNode) -> None:
    """NFS: nodes without a disk have their temporary files in homes."""
    left = node.disk / "slipway-session.aaaaaaaaaa"
    left.mkdir()
    os.utime(left, (time.time() - 900,) * 2)
    (node.bin / "flock").write_text("#!/bin/sh\nexit 65\n")
    (node.bin / "flock").chmod(0o755)
    assert node.run(()) == (0, "")
    assert sorted(places(node)) == ["/tmp", "/var/tmp"]
    assert list(node.disk.iterdir()) == [left]


def test_the_lock_is_held_while_the_session_lives_and_not_by_the_container(
    node: ComputeNode,
) -> None:
    look = f"flock -n {node.disk}/slipway-session.* true && echo free; ls -l /proc/$$/fd"
    code, log = node.run((), look)
    assert code == 0
    assert "free" not in log
    assert str(node.disk) not in log
