"""Resolves paths within an image: an image from a registry may have links to the host."""

from __future__ import annotations

from pathlib import Path

from portal.core.images.names import ImageError

_MOST_LINKS = 40


def inside(root: Path, path: str) -> Path | None:
    """Resolve a path as programs in the image would; None if there are too many links."""
    pending, resolved, followed = list(reversed(Path(path).parts)), root, 0
    while pending:
        name = pending.pop()
        if name in ("/", ".."):
            resolved = root if name == "/" or resolved == root else resolved.parent
            continue
        resolved = resolved / name
        if resolved.is_symlink():
            followed += 1
            if followed > _MOST_LINKS:
                return None
            pending += reversed(resolved.readlink().parts)
            resolved = resolved.parent
    return resolved


def check_plain(root: Path, *paths: str) -> None:
    """Raise ImageError if one of these paths, which a build writes to, contains a link."""
    for relative in paths:
        path = root
        for part in Path(relative).parts:
            path = path / part
            if path.is_symlink():
                link = path.relative_to(root)
                raise ImageError(f"/{link} is a link in the image: a build cannot write there")
