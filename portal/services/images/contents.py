"""The inventories of the images that a user may see."""

from __future__ import annotations

from collections.abc import Callable

from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person
from portal.core.images.inside import Inside
from portal.core.images.inventory import Inventory
from portal.errors import NotFound


class ImageContents:
    """Inventories, each read on request."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        visible: Callable[[Person, Catalog], Catalog],
        inventory: Callable[[Image], Inventory | None],
    ) -> None:
        self._catalog = catalog
        self._visible = visible
        self._inventory = inventory

    def inside(self, person: Person, environment: str, version: str) -> Inside:
        """The inventory of an image that the user may see, even if retired; raises NotFound."""
        image = self._visible(person, self._catalog()).image(environment, version)
        if image is None:
            raise NotFound("There is no such version of an environment.")
        return Inside(image, self._inventory(image))
