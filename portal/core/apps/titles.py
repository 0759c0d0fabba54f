"""Titles of environments and labels of their versions, from the titles in image.toml.

An image's title names environment and version ("Python 3.13", "C++ (GCC 10)"); pages show the
environment once ("Python", "C++") and the versions beside it ("3.13", "GCC 10").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol


class HasTitles(Protocol):
    """Names and titles in an image's file."""

    @property
    def environment(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def environment_title(self) -> str: ...


class Naming(NamedTuple):
    """The displayed names of one version of an environment."""

    environment: str
    """Such as "Python"."""
    version: str
    """Such as "3.13"; different for each version of an environment."""
    full: str
    """Both, such as "Python 3.13" or "C++ (GCC 10)"."""


def plain_naming(environment: str, version: str) -> Naming:
    """The displayed names of a version without an image file."""
    return Naming(environment, version, f"{environment} {version}".rstrip())


def namings(images: Iterable[HasTitles]) -> dict[tuple[str, str], Naming]:
    """The names of all images, by environment and version."""
    groups: dict[str, list[HasTitles]] = {}
    for image in images:
        groups.setdefault(image.environment, []).append(image)
    return {
        (environment, image.version): naming
        for environment, group in groups.items()
        for image, naming in zip(group, _name_versions(environment, group), strict=True)
    }


def _name_versions(environment: str, group: Sequence[HasTitles]) -> list[Naming]:
    title = _title(environment, group)
    labels = [_label(image.title, title) or image.version for image in group]
    if len(set(labels)) < len(labels):
        labels = [image.version for image in group]
    return [
        Naming(title, label, _full(image, title, label))
        for image, label in zip(group, labels, strict=True)
    ]


def _title(environment: str, group: Sequence[HasTitles]) -> str:
    """The title set in its files, else the common prefix of their titles."""
    configured = next((image.environment_title for image in group if image.environment_title), "")
    words = [image.title.split() for image in group]
    common = [pair[0] for pair in takewhile(_all_equal, zip(*words, strict=False))]
    if len(set(map(tuple, words))) == 1:
        common = _without_version(common)
    return configured or _before_parenthesis(" ".join(common)) or environment


def _all_equal(words: tuple[str, ...]) -> bool:
    return len(set(words)) == 1


def _without_version(words: list[str]) -> list[str]:
    # A single title: its last word is the version if it begins with a digit.
    last = words[-1] if len(words) > 1 else ""
    return words[:-1] if re.match(r"v?\d", last) else words


def _before_parenthesis(text: str) -> str:
    """Strip a final part in parentheses, closed or not, and a trailing separator."""
    return re.sub(r"(?<=\S)\s*\([^()]*\)?$", "", text).rstrip(" -:,")


def _label(title: str, environment: str) -> str:
    if title != environment and not title.startswith(f"{environment} "):
        return ""
    label = title.removeprefix(environment).strip(" -:,")
    return label[1:-1] if re.fullmatch(r"\([^()]*\)", label) else label


def _full(image: HasTitles, environment: str, label: str) -> str:
    if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", image.title):
        return image.title
    return f"{image.title or environment} {label}"
