"""Apptainer, by spython's client."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from portal.adapters.images.processes import as_mapped_root, failure, run_shown
from portal.adapters.images.sif_file import settle
from portal.core.images.inventory import METADATA
from portal.core.images.names import ImageError
from portal.core.images.sif import architecture_code
from portal.core.interfaces.images import Containers

EPOCH = "1735689600"
"""2025-01-01: the time of files that a build creates, unless SOURCE_DATE_EPOCH is set."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def _client(run: Callable[[list[str]], None]) -> Any:
    """spython's client, which runs Apptainer's commands by `run`."""
    # Imported here, since the portal's web processes never build and need not load it.
    from spython.main import get_client  # noqa: PLC0415

    class Client(type(get_client(quiet=True))):  # type: ignore[misc]  # spython has no types
        def _init_command(self, action: str, flags: list[str] | None = None) -> list[str]:
            return ["apptainer", *super()._init_command(action, flags)[1:]]

        def _run_command(self, command: list[str], **_: object) -> None:
            run(command)

    return Client()


class Apptainer(Containers):
    """Builds, inspects and runs images; `note` shows Apptainer's output."""

    def __init__(self, note: Callable[[str], None], ids: bool, site_ca: Path | None = None) -> None:
        """`ids`: whether this user has ids in /etc/subuid."""
        self._note = note
        self._ids = ids
        self._site_ca = site_ca
        self._status = 0
        self._last: list[str] = []
        self._environment: dict[str, str] = {}
        self._folder: Path | None = None

    @cached_property
    def _client(self) -> Any:
        return _client(self._run)

    def version(self) -> str:
        _, lines = run_shown(["apptainer", "--version"], lambda _: None)
        return " ".join(lines).removeprefix("apptainer version").strip()

    def unpack(
        self, source: str, target: Path, fakeroot: bool, arguments: Mapping[str, str], folder: Path
    ) -> None:
        options = ["--warn-unused-build-args"] if arguments else []
        options += ["--fakeroot"] if fakeroot else []
        # Users have to be able to read all files, and the builder to delete them.
        options += ["--fix-perms"] if source.startswith(("docker", "oci")) else []
        for name, value in arguments.items():
            options += ["--build-arg", f"{name}={value}"]
        self._build(source, target, [*options, "--sandbox"], folder)

    def pack(self, root: Path, file: Path, fakeroot: bool, compression: str) -> None:
        # `apptainer build` would store the current time in the image.
        squashfs = root.with_suffix(".squashfs")
        command = ["mksquashfs", str(root), str(squashfs), "-noappend", "-no-progress", "-quiet"]
        command += shlex.split(compression)
        if fakeroot:
            command = as_mapped_root(command, self._ids, always=True)
        elif os.geteuid() != 0:
            command.append("-all-root")
        self._environment, self._folder = self._for_build(root.parent), root.parent
        self._checked(command, "mksquashfs")
        self._checked(["apptainer", "sif", "new", str(file)], "apptainer sif")
        self._add(file, root / ".singularity.d/Singularity", "--datatype", "1")
        self._add(file, root.with_name(METADATA), "--datatype", "6")
        system = ["--datatype", "4", "--parttype", "2", "--partfs", "1"]
        self._add(file, squashfs, *system, "--partarch", architecture_code(platform.machine()))
        squashfs.unlink()
        settle(file, int(_epoch()))

    def _add(self, file: Path, part: Path, *kind: str) -> None:
        command = ["apptainer", "sif", "add", *kind, "--groupid", "1", "--filename", part.name]
        self._checked([*command, str(file), str(part)], "apptainer sif")

    def _checked(self, command: list[str], program: str) -> None:
        self._run(command)
        if self._status:
            raise ImageError(failure(program, self._status, self._last))

    def labels(self, file: Path) -> dict[str, str]:
        inspection = self._client.inspect(image=str(file), quiet=True)
        if not isinstance(inspection, dict) or "attributes" not in inspection:
            raise ImageError(f"apptainer cannot read {file}")
        return {str(key): str(value) for key, value in inspection["attributes"]["labels"].items()}

    def test(self, file: Path, home: Path, binds: Sequence[str]) -> int:
        # Root in a container lacks capabilities that Apptainer needs for root.
        options = ["--userns"] if os.geteuid() == 0 else []
        options += ["--containall", "--home", f"{home}:/home/test", "--pwd", "/home/test"]
        for bind in binds:
            options += ["--bind", bind]
        self._environment, self._folder = {}, home
        self._client.execute(
            image=str(file),
            command=["sh", "/test.sh"],
            options=options,
            singularity_options=["--silent"],
        )
        return self._status

    def _build(self, source: str, target: Path, options: list[str], folder: Path) -> None:
        self._environment, self._folder = self._for_build(target.parent), folder
        self._client.build(
            recipe=source, image=str(target), sudo=False, quiet=True, options=options
        )
        if self._status or not target.exists():
            raise ImageError(failure("apptainer build", self._status, self._last))

    def _run(self, command: list[str]) -> None:
        self._status, self._last = run_shown(command, self._note, self._environment, self._folder)

    def _for_build(self, work: Path) -> dict[str, str]:
        """The environment of a build; only APPTAINERENV_ variables reach %post."""
        epoch = _epoch()
        environment = {
            "SOURCE_DATE_EPOCH": epoch,
            "APPTAINERENV_SOURCE_DATE_EPOCH": epoch,
            "APPTAINER_TMPDIR": str(work),
            "APPTAINER_CACHEDIR": os.environ.get("APPTAINER_CACHEDIR", f"{work}/cache"),
        }
        for name in PROXIES:
            if value := os.environ.get(name):
                environment[f"APPTAINERENV_{name}"] = value
        if self._site_ca is not None:
            for name in ("PIP_CERT", "SSL_CERT_FILE"):
                environment[f"APPTAINERENV_{name}"] = str(self._site_ca)
        return environment


def _epoch() -> str:
    return os.environ.get("SOURCE_DATE_EPOCH", "") or EPOCH
