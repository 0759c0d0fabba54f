"""A compute node on which the complete session script runs."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from pathlib import Path

from portal.core.launch.mounts import MountPoint
from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import PLAIN, TEMPLATE

MOUNT_POINTS = (
    MountPoint("home", ".", True),
    MountPoint("data", "storage/data", False),
    MountPoint("maps-2.1", "/srv/storage/alice/maps-2.1", True),
    MountPoint("results", "storage/results", True, "bob"),
    MountPoint("carol-data", "/srv/storage/carol/data", False, "carol"),
)


class ComputeNode:
    """A compute node on which the complete script runs; its container is a script."""

    def __init__(self, root: Path) -> None:
        self.home = root / 'a "home"'
        self.name = self.home
        """The home's path in the cluster's accounts."""
        self.session = self.home / ".slipway" / "sessions" / PLAIN.session
        self.session.mkdir(parents=True)
        (self.session / "spec.json").write_text("{}\n")
        (self.home / "storage" / "data").mkdir(parents=True)
        (self.home / "storage" / "data" / "kept").write_text("treasure")
        self.bin = root / "bin"
        self.bin.mkdir()
        self.seen = root / "seen"
        self.disk = root / "disk"
        """Where the site has temporary files on the node."""
        self.disk.mkdir()
        self.image = root / "image.sif"
        self.image.touch()

    def run(
        self,
        points: tuple[MountPoint, ...],
        container: str = "",
        namespace: str = "",
        own_storage: str = "",
    ) -> tuple[int, str]:
        """Exit code and log of the script; `container` is what apptainer does.

        `namespace` is executed first, with the right to mount. `own_storage` as in JobDescription.
        """
        apptainer = self.bin / "apptainer"
        apptainer.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$@" > {self.seen}\n'
            f"session={shlex.quote(str(self.session))}\n{container}\n"
        )
        apptainer.chmod(0o755)
        job = dataclasses.replace(
            PLAIN,
            mounts=points,
            image=str(self.image),
            toolkit=str(self.image),
            own_storage=own_storage,
        )
        text = render_script(job, TEMPLATE)
        text = text.replace("export PATH=", f"export PATH={self.bin}:")
        text = text.replace("home=~alice", f"home={shlex.quote(str(self.name))}")
        argv = ["bash", "-c", text]
        if namespace:
            within = f'export PATH; {namespace} && exec "$@"'
            argv = ["unshare", "--mount", "--map-root-user", "sh", "-c", within, "sh", *argv]
        done = subprocess.run(
            argv,
            cwd=self.home,
            env={"SLURM_JOB_ID": "1", "SLURMD_NODENAME": "n1", "TMPDIR": str(self.disk)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def binds(self) -> list[str]:
        """The mounts into the session's home with which the container was started."""
        return [line for line in self.seen.read_text().splitlines() if "dst=/home/" in line]


def empty_folder(node: ComputeNode) -> str:
    """The empty folder that covers Slipway's own, as given in the options."""
    return str(node.session / "nothing").replace('"', '""')
