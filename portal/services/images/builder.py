"""Builds images, and replaces them so that a failure or a crash leaves the old one; tests them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.core.images.inventory import Contents, Inventory
from portal.core.images.names import ImageError, ImageName
from portal.core.images.needs import Machine, fakeroot, missing
from portal.core.images.recipe import Sources, check_sources
from portal.core.interfaces.images import (
    Containers,
    ImageStore,
    MachineCheck,
    Note,
    Roots,
    Workspaces,
)
from portal.core.interfaces.systems import Clock

COMPRESSION = "-comp zstd -Xcompression-level 9 -b 64K"
"""mksquashfs's options: blocks of 64 KiB, since a start reads many small files of an image."""
TEST = "test.sh"


@dataclass(frozen=True)
class Order:
    """One build; relative paths in the definition start in `folder`."""

    sources: Sources
    description: str
    """The text of image.toml."""
    folder: Path
    fakeroot: bool | None = None
    if_changed: bool = False
    """Skip the build if the current image has the same sources."""
    compression: str = COMPRESSION


class ImageBuilder:
    """Builds images with Apptainer, each in a temporary folder."""

    def __init__(
        self,
        *,
        containers: Containers,
        roots: Roots,
        store: ImageStore,
        workspaces: Workspaces,
        machine: MachineCheck,
        clock: Clock,
        note: Note,
        test_binds: Mapping[str, Path],
    ) -> None:
        """`test_binds`: files and folders that tests may read, by their path in the container."""
        self._containers = containers
        self._roots = roots
        self._store = store
        self._workspaces = workspaces
        self._machine = machine
        self._clock = clock
        self._note = note
        self._test_binds = test_binds

    def build(self, order: Order) -> Inventory:
        """Build an image and make it the current one; raises ImageError."""
        sources = order.sources
        check_sources(sources)
        title = _title(order)
        with self._store.lock(sources.name):
            if order.if_changed and (inventory := self._unchanged(sources)):
                self._note(f"{sources.name} is up to date")
                self._store.describe(sources.name, order.description)
                return inventory
            machine = self._machine()
            as_root = self._possible(order, machine)
            with self._workspaces() as work:
                file, contents = self._make(order, title, work, as_root, machine.architecture)
                self._store.describe(sources.name, order.description)
                return self._store.install(
                    sources.name, file, contents, self._containers.version(), self._clock()
                )

    def _unchanged(self, sources: Sources) -> Inventory | None:
        """The inventory of the current image if it has the same sources."""
        try:
            inventory = self._store.get(sources.name).inventory
        except ImageError:
            return None
        if inventory is None or inventory.sources != sources.digest:
            return None
        return inventory

    def _possible(self, order: Order, machine: Machine) -> bool:
        """Whether to use --fakeroot; raises ImageError naming everything that is missing."""
        cached = bool(order.sources.suite) and self._roots.has_base(order.sources.suite)
        problems = missing(order.sources, machine, cached)
        if problems:
            lines = "".join(f"\n- {problem}" for problem in problems)
            raise ImageError(f"{order.sources.name} cannot be built on this machine:{lines}")
        return fakeroot(order.sources, machine, order.fakeroot)

    def _make(
        self, order: Order, title: str, work: Path, as_root: bool, architecture: str
    ) -> tuple[Path, Contents]:
        sources, root = order.sources, work / "image"
        source, arguments = self._prepare(order, work, as_root)
        self._note(f"Building {sources.name} from {sources.origin}")
        self._containers.unpack(source, root, as_root, arguments, order.folder)
        self._roots.take_back(root)
        system, packages = self._roots.inspect(root)
        contents = Contents(
            environment=sources.name.environment,
            version=sources.name.version,
            title=title,
            sources=sources.digest,
            origin=sources.origin,
            arguments=dict(sources.arguments),
            architecture=architecture,
            system=system,
            packages=tuple(packages),
        )
        self._roots.describe(root, contents, sources.definition or f"From: {sources.address}\n")
        self._note(f"Packing {len(packages)} packages" if packages else "Packing")
        file = work / "image.sif"
        self._containers.pack(root, file, as_root, order.compression)
        return file, contents

    def _prepare(self, order: Order, work: Path, as_root: bool) -> tuple[str, dict[str, str]]:
        """The source for Apptainer, and the arguments of its definition."""
        sources = order.sources
        if sources.address:
            return sources.address, {}
        arguments = dict(sources.arguments)
        if "{{ recipe }}" in sources.definition:
            arguments["recipe"] = str(order.folder)
        if sources.suite:
            base = work / "base"
            if sources.base:
                self._note(f"Base: {sources.base}")
                self._containers.unpack(sources.base, base, as_root, {}, order.folder)
            else:
                self._note(f"Base: Debian {sources.suite}")
                self._roots.make_base(sources.suite, base)
            self._roots.lend(base, sources.suite)
            arguments["base"] = str(base)
        definition = work / "image.def"
        definition.write_text(sources.definition, encoding="utf-8")
        return str(definition), arguments

    def test(self, name: ImageName, recipe: Path | None) -> None:
        """Run test.sh of a recipe in its image, contained like a session.

        Raises ImageError if there is none, or it fails.
        """
        script = recipe / TEST if recipe is not None else None
        if script is None or not script.is_file():
            raise ImageError(f"{name} has no test: write {TEST} in the recipe's folder")
        file = self._store.file(name)
        paths = {f"/{TEST}": script} | dict(self._test_binds)
        binds = [f"{source}:{path}:ro" for path, source in paths.items() if source.exists()]
        self._note(f"Testing {name}")
        with self._workspaces() as work:
            home = work / "home"
            home.mkdir()
            status = self._containers.test(file, home, binds)
        if status:
            raise ImageError(f"{name} does not work: its test ended with status {status}")
        self._note(f"{name} works")


def _title(order: Order) -> str:
    """The title in image.toml; raises ImageError."""
    try:
        title = tomllib.loads(order.description).get("title")
    except tomllib.TOMLDecodeError as error:
        raise ImageError(f"{order.sources.name}: image.toml: {error}") from error
    if not isinstance(title, str) or not title:
        raise ImageError(f'{order.sources.name}: image.toml needs a line such as title = "R 4.5"')
    return title
