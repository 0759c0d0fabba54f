"""Builds, with fakes for Apptainer and the image's file system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters.images.folder import FolderImages
from portal.core.images.inventory import Contents, Package
from portal.core.images.names import ImageError, ImageName
from portal.core.images.needs import PROGRAMS, Machine
from portal.core.images.recipe import Sources
from portal.core.interfaces.images import Containers, Roots
from portal.services.images.builder import ImageBuilder, Order
from tests.support.sif import sif

NAME = ImageName("r", "4.5")
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
RECIPE = Sources(
    NAME, "Bootstrap: localimage\nFrom: {{ base }}\n%files\n{{ recipe }}/x /x\n", suite="trixie",
    files={"image.def": b"x"}, arguments={"gpu": "1"},
)  # fmt: skip
MACHINE = Machine(
    programs=frozenset(PROGRAMS), user="ann", root=False, all_capabilities=False,
    namespaces=True, architecture="x86_64", ids=True,
)  # fmt: skip


class FakeApptainer(Containers):
    """Notes what is asked of it; what it packs contains `content`."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.content = b"one"
        self.fails = ""
        self.status = 0

    def version(self) -> str:
        return "1.4.5"

    def unpack(
        self, source: str, target: Path, fakeroot: bool, arguments: Mapping[str, str], place: Path
    ) -> None:
        self.asked.append(("unpack", source, fakeroot, dict(arguments)))
        if self.fails:
            raise ImageError(self.fails)
        target.mkdir()

    def pack(self, root: Path, file: Path, fakeroot: bool, compression: str) -> None:
        self.asked.append(("pack", fakeroot, compression))
        file.write_bytes(sif(self.content))

    def labels(self, file: Path) -> dict[str, str]:
        return {}

    def test(self, file: Path, home: Path, binds: Sequence[str]) -> int:
        self.asked.append(("test", file.name, list(binds)))
        return self.status


class FakeRoots(Roots):
    """Notes what happens to a file system."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def has_base(self, suite: str) -> bool:
        return False

    def make_base(self, suite: str, root: Path) -> None:
        self.asked.append(f"base {suite}")
        root.mkdir()

    def lend(self, root: Path, suite: str) -> None:
        self.asked.append("lend")

    def take_back(self, root: Path) -> None:
        self.asked.append("take back")

    def inspect(self, root: Path) -> tuple[str, list[Package]]:
        return "Debian GNU/Linux 13 (trixie)", [Package("deb", "bash", "5")]

    def describe(self, root: Path, contents: Contents, definition: str) -> None:
        self.asked.append(f"describe {contents.title}")


class Bench:
    """A builder on fakes, with a real folder of images."""

    def __init__(self, folder: Path) -> None:
        self.apptainer, self.roots = FakeApptainer(), FakeRoots()
        self.store = FolderImages(folder / "images")
        self.work = folder / "work"
        self.machine = MACHINE
        self.notes: list[str] = []
        self.builder = ImageBuilder(
            containers=self.apptainer, roots=self.roots, store=self.store,
            workspaces=self._workspace, machine=lambda: self.machine, clock=lambda: NOW,
            note=self.notes.append,
            test_binds={"/checks": folder / "checks", "/apps": folder / "none"},
        )  # fmt: skip
        self.order = Order(RECIPE, 'title = "R 4.5"\n', folder / "recipe")

    @contextmanager
    def _workspace(self) -> Iterator[Path]:
        self.work.mkdir(parents=True)
        try:
            yield self.work
        finally:
            self.work.rename(self.work.with_name(f"done-{len(self.notes)}"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_recipe_becomes_the_current_image(bench: Bench) -> None:
    inventory = bench.builder.build(bench.order)
    assert bench.roots.asked == ["base trixie", "lend", "take back", "describe R 4.5"]
    unpack, pack = bench.apptainer.asked
    arguments = {"gpu": "1", "recipe": str(bench.order.folder), "base": str(bench.work / "base")}
    assert unpack == ("unpack", str(bench.work / "image.def"), True, arguments)
    assert pack[:2] == ("pack", True)
    assert (inventory.title, inventory.system) == ("R 4.5", "Debian GNU/Linux 13 (trixie)")
    assert (inventory.sources, inventory.built) == (RECIPE.digest, NOW)
    assert inventory.packages == (Package("deb", "bash", "5"),)
    assert bench.store.get(NAME).inventory == inventory
    assert bench.notes == [
        "Base: Debian trixie",
        "Building r/4.5 from Debian trixie",
        "Packing 1 packages",
    ]


def test_an_address_needs_no_base(bench: Bench) -> None:
    address = "docker://registry.example.org/tool:1"
    order = replace(bench.order, sources=Sources(NAME, address=address))
    assert bench.builder.build(order).origin == address
    assert bench.apptainer.asked[0] == ("unpack", address, True, {})
    assert bench.roots.asked == ["take back", "describe R 4.5"]


def test_the_base_can_come_from_elsewhere(bench: Bench) -> None:
    bench.machine = replace(MACHINE, programs=frozenset(PROGRAMS) - {"debootstrap"})
    order = replace(bench.order, sources=replace(RECIPE, base="docker://debian:trixie"))
    bench.builder.build(order)
    assert bench.apptainer.asked[0] == ("unpack", "docker://debian:trixie", True, {})
    assert bench.roots.asked == ["lend", "take back", "describe R 4.5"]


def test_a_failed_build_leaves_the_old_image(bench: Bench) -> None:
    old = bench.builder.build(bench.order)
    bench.apptainer.fails, bench.apptainer.content = "no network", b"two"
    with pytest.raises(ImageError, match="no network"):
        bench.builder.build(bench.order)
    assert bench.store.get(NAME).inventory == old
    assert not bench.work.exists()


def test_everything_that_is_missing_is_named(bench: Bench) -> None:
    bench.machine = replace(MACHINE, programs=frozenset(), namespaces=False)
    with pytest.raises(ImageError) as caught:
        bench.builder.build(bench.order)
    lines = str(caught.value).splitlines()
    assert lines[0] == "r/4.5 cannot be built on this machine:"
    assert len(lines) == 5
    assert bench.apptainer.asked == []


def test_the_same_sources_are_built_once_if_wanted(bench: Bench) -> None:
    order = replace(bench.order, if_changed=True)
    first = bench.builder.build(order)
    renamed = replace(order, description='title = "R"\n')
    assert bench.builder.build(renamed) == first
    assert len(bench.apptainer.asked) == 2
    assert bench.store.get(NAME).title == "R"
    changed = replace(order, sources=replace(RECIPE, arguments={}))
    bench.builder.build(changed)
    assert len(bench.apptainer.asked) == 4


@pytest.mark.parametrize("text", ["", "title = 1", "title = ", 'title = ""'])
def test_an_image_needs_a_title(bench: Bench, text: str) -> None:
    with pytest.raises(ImageError, match=r"r/4\.5: image\.toml"):
        bench.builder.build(replace(bench.order, description=text))
    assert bench.apptainer.asked == []


def test_a_test_sees_what_sessions_see(bench: Bench, tmp_path: Path) -> None:
    built = bench.builder.build(bench.order)
    recipe, checks = tmp_path / "recipe", tmp_path / "checks"
    recipe.mkdir()
    checks.mkdir()
    with pytest.raises(ImageError, match=r"write test\.sh"):
        bench.builder.test(NAME, recipe)
    (recipe / "test.sh").touch()
    bench.builder.test(NAME, recipe)
    wanted = [f"{recipe}/test.sh:/test.sh:ro", f"{checks}:/checks:ro"]
    assert bench.apptainer.asked[-1] == ("test", built.file, wanted)
    assert bench.notes[-1] == "r/4.5 works"
    bench.apptainer.status = 4
    with pytest.raises(ImageError, match="its test ended with status 4"):
        bench.builder.test(NAME, recipe)
