"""Paths in an image that lead nowhere else: an image from a registry may have links to the host."""

from __future__ import annotations

from pathlib import Path

from portal.core.images.names import ImageError

_MOST_LINKS = 40


def inside(root: Path, place: str) -> Path | None:
    """The file that a path in the image names, as its own programs see it; None: too many links."""
    waiting, found, links = list(reversed(Path(place).parts)), root, 0
    while waiting:
        part = waiting.pop()
        if part in ("/", ".."):
            found = root if part == "/" or found == root else found.parent
            continue
        found = found / part
        if found.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                return None
            waiting += reversed(found.readlink().parts)
            found = found.parent
    return found


def check_plain(root: Path, *places: str) -> None:
    """Raise ImageError if a link is on the way to one of these places, which a build writes to."""
    for place in places:
        path = root
        for part in Path(place).parts:
            path = path / part
            if path.is_symlink():
                name = path.relative_to(root)
                raise ImageError(f"/{name} is a link in the image: a build cannot write there")
