"""View model of the wizard's first step: a card for each environment, with its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.node.common.natural_sort import natural_key

ICON = "box"


@dataclass(frozen=True)
class VersionChip:
    """One version of an environment."""

    image: Image
    label: str
    title: str
    """The title with the environment's title."""
    apps: Sequence[AppSpec]
    """The apps that are not offered everywhere."""
    picked: bool
    proposed: bool
    """Whether a click on its environment's card chooses it."""


@dataclass(frozen=True)
class EnvironmentCard:
    """An environment with its versions, newest first."""

    name: str
    title: str
    icon: str
    versions: Sequence[VersionChip]

    @property
    def words(self) -> str:
        """The text that the search field matches."""
        parts = [self.name, self.title]
        for chip in self.versions:
            parts += [chip.title, chip.image.version, chip.image.description]
            parts += [app.title for app in chip.apps]
            parts += chip.image.packages
        return " ".join(dict.fromkeys(parts)).casefold()


def environment_cards(
    catalog: Catalog, used: Sequence[tuple[str, str]], chosen: Image | None
) -> list[EnvironmentCard]:
    """One card for each environment: last used first, then the default, then by title."""
    groups: dict[str, list[Image]] = {}
    for image in catalog.images:
        groups.setdefault(image.environment, []).append(image)
    recent = dict.fromkeys(name for name, _ in used if name in groups)
    default = [catalog.proposed.environment] if catalog.proposed else []
    by_title = sorted(groups, key=lambda name: natural_key(catalog.environment_title(name)))
    order = dict.fromkeys([*recent, *default, *by_title])
    return [_card(catalog, name, groups[name], used, chosen) for name in order]


def _card(
    catalog: Catalog,
    name: str,
    images: Sequence[Image],
    used: Sequence[tuple[str, str]],
    chosen: Image | None,
) -> EnvironmentCard:
    first = _first(images, used, chosen)
    return EnvironmentCard(
        name=name,
        title=catalog.environment_title(name),
        icon=_icon(catalog, first),
        versions=[_chip(catalog, image, image == chosen, image == first) for image in images],
    )


def _first(images: Sequence[Image], used: Sequence[tuple[str, str]], chosen: Image | None) -> Image:
    """The version that a click on the card chooses: chosen, last used, default, or newest."""
    versions = {image.version: image for image in images}
    lately = [versions[v] for name, v in used if name == images[0].environment and v in versions]
    default = [image for image in images if image.default]
    return next(iter([*(i for i in images if i == chosen), *lately, *default]), images[0])


def _icon(catalog: Catalog, image: Image) -> str:
    app = catalog.apps.get(image.default_app or "")
    return image.icon or (app.icon if app else ICON)


def _chip(catalog: Catalog, image: Image, picked: bool, proposed: bool) -> VersionChip:
    naming = catalog.naming(image.environment, image.version)
    apps = catalog.apps_of(image.environment, image.version)
    return VersionChip(
        image=image,
        label=naming.version,
        title=naming.full,
        apps=[a for a in apps if a.kind != "hub" and a.name not in catalog.everywhere],
        picked=picked,
        proposed=proposed,
    )
