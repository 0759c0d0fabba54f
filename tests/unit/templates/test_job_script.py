"""The job script's search for its cgroup, in sample trees of v1 and v2, run by a real bash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import ONE_HOUR_JOB, TEMPLATE_FILE

UNLIMITED = "9223372036854771712"


class Node:
    """A compute node's cgroup files in a directory of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc").mkdir()

    def set_files(self, cgroup: str, mountinfo: str) -> None:
        (self.root / "proc" / "cgroup").write_text(cgroup)
        (self.root / "proc" / "mountinfo").write_text(mountinfo.replace("@", str(self.root)))

    def group(self, path: str, **files: str) -> None:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("__", ".", 1)).write_text(text + "\n")

    def options(self) -> list[str]:
        """The --mount options that the script's search results in."""
        text = render_script(ONE_HOUR_JOB, TEMPLATE_FILE.read_text())
        search = text.partition("# --- the job's own cgroup")[2].partition("# --- the container")[0]
        search = search.replace("/proc/self/", f"{self.root}/proc/")
        done = subprocess.run(
            ["bash", "-c", f'#{search}\nprintf "%s\\n" "${{binds[@]}}"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        lines = done.stdout.replace(str(self.root), "").split("\n")
        return [line for line in lines if line.startswith("type=bind")]

    def binds(self) -> dict[str, str]:
        """Mount point in the container, and the node's folder mounted there."""
        pattern = re.compile(r'type=bind,"src=(.+)","dst=(.+)",ro')
        matches = [pattern.fullmatch(option) for option in self.options()]
        assert all(matches)
        return {match[2]: match[1] for match in matches if match}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


V1_MOUNTS = """\
30 29 0:27 {root} @/memory rw,nosuid - cgroup cgroup rw,memory
31 29 0:28 {root} @/cpuset rw,nosuid - cgroup cgroup rw,cpuset
32 29 0:29 {root} @/cpuacct rw,nosuid - cgroup cgroup rw,cpuacct
33 29 0:30 / @ rw - ext4 /dev/sda rw
"""


def v1_tree(node: Node) -> None:
    job = "slurm_n1/uid_1001/job_5"
    node.group(f"memory/{job}", memory__limit_in_bytes="629145600")
    node.group(f"memory/{job}/step_batch", memory__limit_in_bytes="629145600")
    node.group(f"memory/{job}/step_batch/task_0", memory__limit_in_bytes=UNLIMITED)
    node.group("memory", memory__limit_in_bytes=UNLIMITED)
    node.group(f"cpuset/{job}/step_batch")
    node.group(f"cpuacct/{job}/step_batch/task_0")


def test_v1_uses_the_level_with_the_limit(node: Node) -> None:
    v1_tree(node)
    step = "/slurm_n1/uid_1001/job_5/step_batch"
    node.set_files(
        f"4:memory:{step}/task_0\n3:cpuset:{step}\n2:cpuacct:{step}/task_0\n1:name=systemd:/\n0::/\n",
        V1_MOUNTS.format(root="/"),
    )
    assert node.binds() == {
        "/memory": f"/memory{step}",
        "/cpuset": f"/cpuset{step}",
        "/cpuacct": f"/cpuacct{step}",
    }


def test_v1_where_the_mount_begins_below_the_root(node: Node) -> None:
    v1_tree(node)
    above = "/libpod_parent/libpod-1"
    step = "/slurm_n1/uid_1001/job_5/step_batch"
    node.set_files(
        f"4:memory:{above}{step}\n3:cpuset:{above}{step}\n2:cpuacct:{above}{step}/task_0\n",
        V1_MOUNTS.format(root=above),
    )
    assert node.binds()["/memory"] == f"/memory{step}"
    assert node.binds()["/cpuset"] == f"/cpuset{step}"


def test_v1_controllers_that_share_a_mount(node: Node) -> None:
    step = "/slurm_n1/job_5/step_batch"
    node.group(f"memory{step}", memory__limit_in_bytes="1000000")
    node.group(f"cpu,cpuacct{step}")
    node.set_files(
        f"4:memory:{step}\n2:cpu,cpuacct:{step}\n",
        "30 29 0:27 / @/memory rw - cgroup cgroup rw,memory\n"
        "31 29 0:28 / @/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
    )
    assert node.binds()["/cpu,cpuacct"] == f"/cpu,cpuacct{step}"


def test_v1_without_a_memory_limit_still_shows_the_cores(node: Node) -> None:
    node.group("memory/slurm/job_5", memory__limit_in_bytes=UNLIMITED)
    node.group("cpuset/slurm/job_5")
    node.set_files(
        "4:memory:/slurm/job_5\n3:cpuset:/slurm/job_5\n2:cpuacct:/\n", V1_MOUNTS.format(root="/")
    )
    assert node.binds() == {"/cpuset": "/cpuset/slurm/job_5"}


def test_v2_uses_the_level_with_the_limit(node: Node) -> None:
    scope = "/system.slice/slurmstepd.scope/job_5"
    node.group(f"fs{scope}", memory__max="629145600")
    node.group(f"fs{scope}/step_batch", memory__max="629145600")
    node.group(f"fs{scope}/step_batch/user", memory__max="max")
    node.group(f"fs{scope}/step_batch/user/task_0", memory__max="max")
    node.set_files(
        f"0::{scope}/step_batch/user/task_0\n",
        "30 29 0:27 / @/fs rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
    )
    assert node.binds() == {"/fs": f"/fs{scope}/step_batch"}


def test_v2_without_a_limit_shows_the_own_group(node: Node) -> None:
    node.group("fs/slurm/job_5", memory__max="max")
    node.set_files("0::/slurm/job_5\n", "30 29 0:27 / @/fs rw - cgroup2 cgroup2 rw\n")
    assert node.binds() == {"/fs": "/fs/slurm/job_5"}


def test_without_a_group_of_its_own_nothing_is_mounted(node: Node) -> None:
    node.group("fs", memory__max="max")
    node.set_files("0::/\n", "30 29 0:27 / @/fs rw - cgroup2 cgroup2 rw\n")
    assert node.binds() == {}


def test_secret_is_only_in_the_open_file() -> None:
    text = render_script(ONE_HOUR_JOB, TEMPLATE_FILE.read_text())
    assert text.index('exec 3< "$session/spec.json"') < text.index('rm -f -- "$session/spec.json"')
    assert "<&3 3<&-" in text
    assert "spec.json" not in text.partition("rm -f")[2].partition("\n")[2]
