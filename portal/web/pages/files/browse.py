"""View model of a folder on the Files page: breadcrumbs, entries, and links that sort them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import unquote, urlencode

from portal.core.auth.person import Person
from portal.core.files.entries import Entry
from portal.core.units import file_size
from portal.errors import PortalError, visible
from portal.services.files.files import Files

PAGE = 200
"""Entries of one page."""
AREAS = {"home": "Home", "storage": "Storage folders"}
SHARED = "shared"
"""First part of the locations of folders that others share: shared/OWNER/FOLDER."""
_VIEW_OPTIONS = ("sort", "order", "hidden")
"""Parts of the query that links to other folders preserve."""
_ICONS = {
    "file-earmark-image": "png jpg jpeg gif webp svg bmp tif tiff ico avif",
    "file-earmark-text": "txt md rst log out err tex bib",
    "file-earmark-code": "py r jl c h cpp hpp f f90 js ts sh bash toml yaml yml json xml html css",
    "journal-code": "ipynb",
    "file-earmark-pdf": "pdf",
    "file-earmark-spreadsheet": "csv tsv xls xlsx ods parquet",
    "file-earmark-zip": "zip tar gz tgz bz2 xz zst 7z",
    "file-earmark-music": "mp3 wav flac ogg",
    "file-earmark-play": "mp4 mkv webm mov avi",
}
_BY_ENDING = {ending: icon for icon, endings in _ICONS.items() for ending in endings.split()}
_KIND_WORDS = {"fifo": "named pipe", "socket": "socket", "device": "device", "link": "link"}
_RIGHTS = "rwxrwxrwx"


def area_title(root: str) -> str:
    """The title of a storage area."""
    return AREAS.get(root, root)


@dataclass(frozen=True)
class Crumb:
    """A folder of the breadcrumbs."""

    name: str
    path: str


def _area_names(names: list[str]) -> int:
    """The number of names of a location that form its area."""
    return min(3, len(names)) if names[0] == SHARED else 1


def crumbs_of(location: str) -> list[Crumb]:
    """The folders from the area's root to a location."""
    names = location.split("/")
    first = _area_names(names)
    title = area_title(names[0])
    if first > 1:  # another user's folder counts as an area
        title = "/".join(visible(unquote(name, errors="replace")) for name in names[1:first])
    crumbs = [Crumb(title, "/".join(names[:first]))]
    for number, name in enumerate(names[first:], start=first + 1):
        crumbs.append(Crumb(visible(unquote(name, errors="replace")), "/".join(names[:number])))
    return crumbs


@dataclass(frozen=True)
class Row:
    """One entry."""

    entry: Entry
    folder: str = ""
    """For search results: its folder, relative to the folder shown."""

    @property
    def name(self) -> str:
        """Its name, printable."""
        return visible(self.entry.name)

    @property
    def path(self) -> str:
        """Its location."""
        return self.entry.path

    @property
    def icon(self) -> str:
        """The icon of its kind."""
        if self.entry.is_folder:
            return "folder-symlink-fill" if self.entry.link else "folder-fill"
        if self.entry.kind != "file":
            return "link-45deg" if self.entry.kind == "link" else "dash-circle-dotted"
        ending = self.name.rpartition(".")[2].lower()
        return _BY_ENDING.get(ending, "file-earmark")

    @property
    def kind(self) -> str:
        """Its kind in words; "" for a file."""
        if self.entry.link is not None:
            return "link to"
        return "folder" if self.entry.is_folder else _KIND_WORDS.get(self.entry.kind, "")

    @property
    def link(self) -> str:
        """The target of a link."""
        return visible(self.entry.link or "")

    @property
    def size(self) -> str:
        """Its size; "" for folders, whose sizes are counted on request."""
        return size_words(self.entry.size) if self.entry.kind == "file" else ""

    @property
    def modified(self) -> datetime:
        """The time of its last change."""
        return self.entry.modified

    @property
    def rights(self) -> str:
        """The permissions as `ls -l` writes them, without the kind."""
        return rights(self.entry.mode)


def size_words(size: int) -> str:
    """A size in one unit; small ones in bytes."""
    if size < 1024:
        return f"{size} B"
    return file_size(size) if size < 1000 * 2**30 else f"{size / 2**40:.1f} TB"


def rights(mode: str) -> str:
    """ "0640" as "rw-r-----"."""
    number = int(mode, 8)
    return "".join(
        letter if number >> (8 - index) & 1 else "-" for index, letter in enumerate(_RIGHTS)
    )


@dataclass(frozen=True)
class Folder:
    """A page of a folder, or of search results."""

    location: str
    query: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)
    total: int = 0
    offset: int = 0
    writable: bool = False
    complete: bool = True
    """Whether a search below this folder was complete."""
    data: Entry | None = None
    problem: PortalError | None = None

    @property
    def crumbs(self) -> list[Crumb]:
        """The breadcrumbs of this folder."""
        return crumbs_of(self.location)

    @property
    def title(self) -> str:
        """Its name."""
        return self.crumbs[-1].name

    @property
    def parent(self) -> str:
        """The address of the folder above; the start page's for a root."""
        names = self.location.split("/")
        above = "/".join(names[:-1])
        return self.at(above) if len(names) > _area_names(names) else "/files"

    @property
    def storage(self) -> Crumb | None:
        """The user's own storage folder that this is, or is in."""
        crumbs = self.crumbs
        return crumbs[1] if self.location.startswith("storage/") else None

    @property
    def is_search(self) -> bool:
        """Whether these are search results."""
        return bool(self.query.get("search"))

    @property
    def is_below(self) -> bool:
        """Whether the search included the folders below."""
        return self.is_search and self.query.get("below") == "true"

    @property
    def shown(self) -> tuple[int, int]:
        """The numbers of the first and last entry."""
        return self.offset + 1, self.offset + len(self.rows)

    def at(self, path: str) -> str:
        """The address of another folder, shown in the same way."""
        return _address(path, {key: self.query[key] for key in _VIEW_OPTIONS if key in self.query})

    def by(self, column: str) -> str:
        """The address of this folder sorted by a column, or in the opposite order."""
        sort, order = self.query.get("sort", "name"), self.query.get("order", "asc")
        first = "asc" if column == "name" else "desc"
        other = "desc" if order == "asc" else "asc"
        return self._with(sort=column, order=other if sort == column else first, offset="")

    def aria_sort(self, column: str) -> str:
        """The value of `aria-sort`; "" if it is not sorted by this column."""
        if self.query.get("sort", "name") != column or self.is_below:
            return ""
        return "descending" if self.query.get("order") == "desc" else "ascending"

    @property
    def hidden_toggle(self) -> str:
        """The address with hidden files, or without."""
        return self._with(hidden="" if self.query.get("hidden") else "true", offset="")

    @property
    def without_search(self) -> str:
        """The address of this folder without a search."""
        return self._with(search="", below="", offset="")

    @property
    def below(self) -> str:
        """The address of this search in the folders below as well."""
        return self._with(below="true", offset="")

    @property
    def previous(self) -> str:
        """The address of the previous page; "" if this is the first."""
        return self._with(offset=str(max(self.offset - PAGE, 0))) if self.offset else ""

    @property
    def following(self) -> str:
        """The address of the next page; "" if this is the last."""
        after = self.offset + PAGE
        return self._with(offset=str(after)) if after < self.total else ""

    def _with(self, **changes: str) -> str:
        return _address(self.location, {**self.query, **changes})


def _address(path: str, query: Mapping[str, str]) -> str:
    sent = {key: value for key, value in query.items() if value and (key, value) != ("offset", "0")}
    return f"/files/{path}" + (f"?{urlencode(sent)}" if sent else "")


def open_folder(files: Files, person: Person, location: str, query: Mapping[str, str]) -> Folder:
    """Request a page of a folder; raises the errors of `Files`."""
    if query.get("below") == "true" and query.get("search"):
        return _search(files, person, location, query)
    parameters = {key: value for key, value in query.items() if key != "below"}
    listing = files.list(person, location, {**parameters, "limit": PAGE})
    return Folder(
        location,
        query,
        [Row(entry) for entry in listing.entries],
        listing.total,
        listing.offset,
        listing.writable,
        data=listing.folder,
    )


def _search(files: Files, person: Person, location: str, query: Mapping[str, str]) -> Folder:
    hidden = query.get("hidden") == "true"
    results = files.search(person, location, query["search"], hidden=hidden)
    rows = [Row(entry, _subfolder(location, entry.path)) for entry in results.entries]
    return Folder(location, query, rows, len(rows), complete=results.complete)


def _subfolder(location: str, path: str) -> str:
    below = path.rpartition("/")[0].removeprefix(location).strip("/")
    return visible(unquote(below, errors="replace"))
