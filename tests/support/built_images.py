"""Which recipes of images/ are built: most are built only by `make images ALL=1`.

Tests name those that they need by `@pytest.mark.needs_images("r/4.5")`. Those whose images are
missing are left out, and the end of the output says so. For that, a conftest.py imports the hooks.
"""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT

IMAGES = ROOT / "cluster" / ".cache" / "software" / "images"


def recipes() -> list[str]:
    """Every recipe, as "ENVIRONMENT/VERSION"."""
    found = (ROOT / "images").glob("*/*/image.def")
    return sorted(path.parent.relative_to(ROOT / "images").as_posix() for path in found)


def is_built(recipe: str) -> bool:
    """Whether clusters of this checkout have the image."""
    return (IMAGES / recipe / "image.sif").is_file()


def needs_registry(recipe: str) -> bool:
    """Whether it starts from an image in a registry, so that nothing here builds it."""
    return not (ROOT / "images" / recipe / "base").is_file()


def left_out() -> list[str]:
    """The recipes that tests cannot run, each with the reason."""
    return [
        f"{recipe}: {'needs a registry' if needs_registry(recipe) else 'not built'}"
        for recipe in recipes()
        if not is_built(recipe)
    ]


_TOLD = pytest.StashKey[bool]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose images are not built."""
    without = [item for item in items if not _has_images(item)]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


def _has_images(item: pytest.Item) -> bool:
    needed = [name for mark in item.iter_markers("needs_images") for name in mark.args]
    return all(map(is_built, needed))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the images without which tests were left out, once for all conftest.py."""
    missing = left_out()
    if missing and not config.stash.get(_TOLD, False):
        config.stash[_TOLD] = True
        terminalreporter.section("left out: tests of images that are not there")
        for line in missing:
            terminalreporter.write_line(line)
        terminalreporter.write_line("make images ALL=1 builds those that need no registry")
