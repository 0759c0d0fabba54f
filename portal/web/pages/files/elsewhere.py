"""Links from a folder to other programs of the site, such as Globus (files.links)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

from portal.config.files import FileLink
from portal.core.auth.person import Person


def links_of(links: Sequence[FileLink], person: Person, location: str) -> list[tuple[str, str]]:
    """Titles and addresses of the links of the folder at a location."""
    area, _, path = location.partition("/")
    values = {"{user}": quote(person.name, safe=""), "{path}": quote(unquote_to_bytes(path))}
    return [(link.title, _filled(link.url, values)) for link in links if link.area == area]


def _filled(url: str, values: dict[str, str]) -> str:
    """Replace the placeholders: values are encoded, so none of them contains one."""
    for name, value in values.items():
        url = url.replace(name, value)
    return url
