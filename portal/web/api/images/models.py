"""Response models for what is inside an image."""

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
    """Who installed it: a distribution's package manager, or Python's."""

    @classmethod
    def of(cls, package: Package) -> PackageOut:
        """Build it."""
        return cls(name=package.name, version=package.version, kind=package.kind)


class InventoryOut(ResponseModel):
    """What the build of an image wrote down."""

    system: str
    """The distribution's own name; empty if there is none."""
    origin: str
    """The base system, or the address, from which it was built."""
    arguments: dict[str, str]
    """Those of the build."""
    architecture: str
    digest: str
    """SHA-256 of the image's file system; another content has another digest."""
    recipe: str
    """SHA-256 of the recipe, its arguments and the base's name."""
    size: int
    """Bytes."""
    built: Time
    apptainer: str
    """The version of Apptainer that built it."""
    main_packages: list[PackageOut]
    """Those that people choose an image for."""
    packages: list[PackageOut]

    @classmethod
    def of(cls, found: Inventory, main: list[Package]) -> InventoryOut:
        """Build it."""
        return cls(
            system=found.system,
            origin=found.origin,
            arguments=found.arguments,
            architecture=found.architecture,
            digest=found.digest,
            recipe=found.sources,
            size=found.size,
            built=found.built,
            apptainer=found.apptainer,
            main_packages=[PackageOut.of(one) for one in main],
            packages=[PackageOut.of(one) for one in found.packages],
        )


class InsideOut(ResponseModel):
    """One version of an environment, with what is inside."""

    environment: str
    version: str
    title: str
    description: str
    retired: bool
    """Whether it can no longer be launched."""
    inventory: InventoryOut | None
    """Null if the image's file came without one."""

    @classmethod
    def of(cls, inside: Inside) -> InsideOut:
        """Build it."""
        image, found = inside.image, inside.inventory
        return cls(
            environment=image.environment,
            version=image.version,
            title=image.title,
            description=image.description,
            retired=image.retired,
            inventory=InventoryOut.of(found, inside.key) if found else None,
        )
