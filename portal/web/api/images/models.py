"""Response models for the contents of an image."""

from __future__ import annotations

from typing import Literal

from portal.core.images.inside import Inside
from portal.core.images.inventory import Inventory, Package
from portal.web.api.models.base import ResponseModel, Time


class PackageOut(ResponseModel):
    """An installed package."""

    name: str
    version: str
    kind: Literal["deb", "rpm", "apk", "pip"]
    """The package manager that installed it: a distribution's, or Python's."""

    @classmethod
    def of(cls, package: Package) -> PackageOut:
        """Build it."""
        return cls(name=package.name, version=package.version, kind=package.kind)


class InventoryOut(ResponseModel):
    """The inventory that the build of an image recorded."""

    system: str
    """The distribution's name for itself; may be empty."""
    origin: str
    """The base system, or the address, from which it was built."""
    arguments: dict[str, str]
    """The arguments of the build."""
    architecture: str
    digest: str
    """SHA-256 of the image's file system."""
    recipe: str
    """SHA-256 of the recipe, its arguments and the base's name."""
    size: int
    """Bytes."""
    built: Time
    apptainer: str
    """The version of Apptainer that built it."""
    main_packages: list[PackageOut]
    """The packages by which users choose an image."""
    packages: list[PackageOut]

    @classmethod
    def of(cls, inventory: Inventory, main: list[Package]) -> InventoryOut:
        """Build it."""
        return cls(
            system=inventory.system,
            origin=inventory.origin,
            arguments=inventory.arguments,
            architecture=inventory.architecture,
            digest=inventory.digest,
            recipe=inventory.sources,
            size=inventory.size,
            built=inventory.built,
            apptainer=inventory.apptainer,
            main_packages=[PackageOut.of(package) for package in main],
            packages=[PackageOut.of(package) for package in inventory.packages],
        )


class InsideOut(ResponseModel):
    """A version of an environment, with its inventory."""

    environment: str
    version: str
    title: str
    description: str
    retired: bool
    """Whether it can no longer be launched."""
    inventory: InventoryOut | None
    """Null if the image file has none."""

    @classmethod
    def of(cls, inside: Inside) -> InsideOut:
        """Build it."""
        image, inventory = inside.image, inside.inventory
        return cls(
            environment=image.environment,
            version=image.version,
            title=image.title,
            description=image.description,
            retired=image.retired,
            inventory=InventoryOut.of(inventory, inside.key) if inventory else None,
        )
