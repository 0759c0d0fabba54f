"""Which recipes of images/ are built: most are built only by `make images ALL=1`.

Tests name those that they need by `@pytest.mark.needs_images("r/4.5")`. Those whose images are
missing are left out, and the end of the output says so.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
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
