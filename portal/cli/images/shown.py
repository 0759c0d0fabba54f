"""Output of `slipway images` on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from portal.core.images.inventory import Inventory
from portal.core.images.use import Removal, StoredImage

_KINDS = {"deb": "Debian", "rpm": "RPM", "apk": "Alpine", "pip": "Python"}


def size(number: int) -> str:
    """A size in MiB or GiB."""
    mib = number / 2**20
    return f"{mib / 1024:.1f} GB" if mib >= 1024 else f"{max(mib, 0.1):.1f} MB"


def shown_list(listed: Iterable[tuple[StoredImage, int]]) -> Iterator[str]:
    """A table of all images with the number of sessions that use each."""
    rows = [("IMAGE", "TITLE", "SIZE", "BUILT", "SESSIONS", "")]
    for image, sessions in listed:
        built = image.inventory.built if image.inventory else image.changed
        state = f"retired {image.retired:%Y-%m-%d}" if image.retired else ""
        older = sum(not file.current for file in image.files)
        notes = [state, f"{older} replaced" if older else ""]
        rows.append(
            (
                str(image.name), image.title, size(image.size), f"{built:%Y-%m-%d}",
                str(sessions), ", ".join(filter(None, notes)),
            )
        )  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        yield "  ".join(
            f"{text:<{width}}" for text, width in zip(row, widths, strict=True)
        ).rstrip()


def shown_inventory(image: StoredImage, packages: bool) -> Iterator[str]:
    """Lines about one image, with its inventory."""
    yield f"image      {image.name}"
    yield f"title      {image.title}"
    yield f"size       {size(image.size)}"
    if image.retired:
        yield f"retired    {image.retired:%Y-%m-%d %H:%M} UTC"
    if image.inventory is None:
        yield "inventory  none: it was not built by `slipway images build`"
        return
    yield from _built(image.inventory)
    counts = Counter(package.kind for package in image.inventory.packages)
    numbers = ", ".join(f"{count} {_KINDS[kind]}" for kind, count in counts.items())
    yield f"packages   {numbers or 'none'}"
    if packages:
        for package in image.inventory.packages:
            yield f"  {package.kind}  {package.name} {package.version}"


def _built(inventory: Inventory) -> Iterator[str]:
    yield f"digest     {inventory.digest}"
    yield f"sources    {inventory.sources}"
    yield f"from       {inventory.origin}"
    if inventory.system:
        yield f"system     {inventory.system}"
    for name, value in inventory.arguments.items():
        yield f"argument   {name}={value}"
    yield f"built      {inventory.built:%Y-%m-%d %H:%M} UTC by Apptainer {inventory.apptainer}"


def shown_removals(removals: Iterable[Removal], dry_run: bool) -> Iterator[str]:
    """Lines about the files that prune deletes, and those that it keeps with the reason."""
    freed = 0
    verb = "would delete" if dry_run else "deleted"
    for removal in removals:
        name = removal.image.name
        if removal.kept_because:
            yield f"kept {name}: {removal.kept_because}"
            continue
        freed += sum(file.size for file in removal.files)
        deleted = str(name) if removal.entire_image else f"{len(removal.files)} replaced of {name}"
        yield f"{verb} {deleted}"
    yield f"{'to be freed' if dry_run else 'freed'}: {size(freed) if freed else 'nothing'}"
