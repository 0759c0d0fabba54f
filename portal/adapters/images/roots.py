"""An image's file system as a folder, during a build."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from portal.adapters.images.links import check_plain, inside
from portal.adapters.images.processes import as_mapped_root, run_checked
from portal.adapters.images.site import Site, borrowed
from portal.core.images.inventory import (
    INSIDE,
    METADATA,
    Contents,
    Package,
    alpine_packages,
    debian_packages,
    labels,
    metadata,
    python_packages,
    red_hat_packages,
    system_name,
)
from portal.core.images.names import ImageError
from portal.core.interfaces.images import Roots

FRESH_SECONDS = 24 * 3600.0
"""Seconds for which a base system is reused."""
SLIM = "".join(f"path-exclude=/usr/share/{name}/*\n" for name in ("doc", "man", "locale"))
_LEFTOVERS = (
    "etc/apt etc/pip.conf run/site var/lib/apt/lists var/cache/apt var/cache/ldconfig/aux-cache"
).split()
_SCRIPTS = ("env/90-environment.sh", "runscript", "startscript", "test")
_LENT = ("etc/pip.conf", "etc/apt/apt.conf.d", "etc/apt/sources.list.d", "etc/dpkg/dpkg.cfg.d")
_EMPTIED = ("tmp", "var/tmp", "var/log")
_DATABASES = (("var/lib/dpkg/status", debian_packages), ("lib/apk/db/installed", alpine_packages))


class LocalRoots(Roots):
    """Local folders; base systems are cached for a day."""

    def __init__(self, bases: Path, site: Site, ids: bool, note: Callable[[str], None]) -> None:
        self._bases = bases
        self._site = site
        self._ids = ids
        self._note = note

    def has_base(self, suite: str) -> bool:
        return os.access(self._cached(suite), os.R_OK)

    def make_base(self, suite: str, root: Path) -> None:
        file = self._cached(suite)
        if not self._fresh(file):
            try:
                self._bootstrap(suite, root.parent / "bare", file)
            except ImageError as error:
                if not self.has_base(suite):
                    raise
                self._note(f"Using the base system of {time.ctime(file.stat().st_mtime)}: {error}")
        root.mkdir()
        # With the image's owners, whichever user builds.
        unpack = as_mapped_root(
            ["tar", "-C", str(root), "--exclude=./dev/*", "-xf", str(file)], self._ids, always=True
        )
        run_checked(unpack, self._note, "Unpacking the base system")

    def _bootstrap(self, suite: str, bare: Path, file: Path) -> None:
        mirror = [self._site.mirror] if self._site.mirror else []
        command = ["debootstrap", "--variant=minbase", suite, str(bare), *mirror]
        self._run(*command, title="debootstrap")
        # An unprivileged build cannot copy device nodes, and Apptainer provides its own /dev.
        for path in ("dev", "var/cache/apt/archives", "var/lib/apt/lists"):
            self._empty(bare / path)
        (bare / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True, exist_ok=True)
        self._bases.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            self._run(
                "tar", "-C", str(bare), "-cf", str(draft), ".", title="Storing the base system"
            )
            os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)
            self._run("rm", "-rf", str(bare), title="Deleting a folder")

    def lend(self, root: Path, suite: str) -> None:
        check_plain(root, "dev", "run/site", *_LENT)
        self._empty(root / "dev")
        if not all((root / path).is_dir() for path in ("etc/apt", "etc/dpkg", "var/lib/dpkg")):
            raise ImageError("the base system has no apt and dpkg: it has to be a Debian")
        (root / "etc/dpkg/dpkg.cfg.d").mkdir(exist_ok=True)
        (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(SLIM)
        self._site.lend(root, suite)

    def take_back(self, root: Path) -> None:
        original = borrowed(root)
        if original is None:
            return
        parents = {os.path.dirname(path) for path in (*_LEFTOVERS, *_EMPTIED)}
        check_plain(root, *sorted(parents))
        had_apt = (root / "etc/apt").is_dir()
        self._run("rm", "-rf", *(str(root / path) for path in _LEFTOVERS), title="Cleaning")
        for path in _EMPTIED:
            self._empty(root / path)
        if had_apt:
            self._run("cp", "-r", str(original), str(root / "etc/apt"), title="Cleaning")
            for path in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
                self._run("mkdir", "-p", str(root / path), title="Cleaning")

    def inspect(self, root: Path) -> tuple[str, list[Package]]:
        packages: list[Package] = []
        for path, read in _DATABASES:
            packages += read(_text(root, path))
        if (root / "usr/bin/rpm").exists() and not packages:
            packages += red_hat_packages(_rpm(root))
        return system_name(_text(root, "etc/os-release")), packages + python_packages(
            _python_folders(root)
        )

    def describe(self, root: Path, contents: Contents, definition: str) -> None:
        folder = root / ".singularity.d"
        check_plain(root, folder.name)
        entries = labels(contents, json.loads(_text(root, ".singularity.d/labels.json") or "{}"))
        scripts = {name: _text(root, f".singularity.d/{name}") for name in _SCRIPTS}
        texts = {
            root.with_name(METADATA): json.dumps(metadata(entries, definition, scripts), indent=1),
            folder / "labels.json": json.dumps(entries, indent=1, sort_keys=True),
            root / INSIDE: contents.model_dump_json(indent=1),
            # Apptainer's file contains paths of the build machine.
            folder / "Singularity": definition,
        }
        self._run("rm", "-rf", str(folder / "bootstrap_history"), title="Describing the image")
        for file, text in texts.items():
            file.unlink(missing_ok=True)
            file.write_text(f"{text}\n", encoding="utf-8")
            file.chmod(0o644)

    def _cached(self, suite: str) -> Path:
        return self._bases / f"{suite}.tar"

    def _fresh(self, file: Path) -> bool:
        try:
            return time.time() - file.stat().st_mtime < FRESH_SECONDS
        except OSError:
            return False

    def _empty(self, folder: Path) -> None:
        if folder.is_dir() and not folder.is_symlink():
            self._run("find", str(folder), "-mindepth", "1", "-delete", title="Cleaning")

    def _run(self, *command: str, title: str) -> None:
        run_checked(as_mapped_root(command, self._ids), self._note, title)


def _text(root: Path, path: str) -> str:
    """A small file of the image; "" if it is missing."""
    file = inside(root, path)
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file is not None else ""
    except OSError:
        return ""


def _rpm(root: Path) -> str:
    command = ["apptainer", "--silent", "exec", str(root), "rpm", "-qa", "--qf"]
    try:
        return subprocess.run(
            [*command, "%{NAME} %{VERSION}-%{RELEASE}\n"],
            capture_output=True, check=False, encoding="utf-8", errors="replace", timeout=120,
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _python_folders(root: Path) -> Iterator[str]:
    for folder, names, _ in os.walk(root):
        if Path(folder) == root:
            names[:] = [name for name in names if name not in ("proc", "sys", "dev")]
        yield from (name for name in names if name.endswith(".dist-info"))
