"""The inventory of an image: written by a build, shown to users."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

INSIDE = ".singularity.d/slipway.json"
"""Path of the inventory in the image; without times, so that equal sources give equal images."""
METADATA = "inspect-metadata.json"
"""The part of the SIF file that `apptainer inspect` shows."""
Kind = Literal["deb", "rpm", "apk", "pip"]


class Package(NamedTuple):
    """One installed package."""

    kind: Kind
    name: str
    version: str


class Contents(BaseModel):
    """Contents and sources of an image."""

    model_config = ConfigDict(frozen=True)

    environment: str
    version: str
    title: str
    sources: str
    """SHA-256 of the recipe, its arguments and the base's name."""
    origin: str
    """The base system, or the address."""
    arguments: dict[str, str] = {}
    architecture: str = ""
    system: str = ""
    """The distribution's name."""
    packages: tuple[Package, ...] = ()


class Inventory(Contents):
    """The contents with data that is available after the build; the size in bytes."""

    digest: str
    """SHA-256 of the image's file system."""
    size: int
    built: datetime
    apptainer: str = ""

    @property
    def file(self) -> str:
        """The name of the image's file."""
        return file_name(self.digest)


def file_name(digest: str) -> str:
    """The name of an image's file, derived from its content."""
    return f"image-{digest[:16]}.sif"


def inventory_name(sif: str) -> str:
    """The name of the inventory beside an image's file."""
    return sif.removesuffix(".sif") + ".json"


def debian_packages(status: str) -> list[Package]:
    """The installed packages of /var/lib/dpkg/status."""
    packages = []
    for record in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): *(.*)$", record, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            packages.append(Package("deb", fields["Package"], fields.get("Version", "")))
    return packages


def alpine_packages(installed: str) -> list[Package]:
    """The packages of /lib/apk/db/installed."""
    packages = []
    for record in installed.split("\n\n"):
        fields = dict(re.findall(r"^([PV]):(.*)$", record, re.MULTILINE))
        if "P" in fields:
            packages.append(Package("apk", fields["P"], fields.get("V", "")))
    return packages


def red_hat_packages(listed: str) -> list[Package]:
    """The packages of `rpm -qa` with name, blank and version in each line."""
    pairs = (line.split() for line in listed.splitlines())
    return [Package("rpm", pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def python_packages(folders: Iterable[str]) -> list[Package]:
    """The packages of folders such as numpy-2.3.1.dist-info."""
    packages = set()
    for folder in folders:
        name, _, version = folder.removesuffix(".dist-info").rpartition("-")
        if folder.endswith(".dist-info") and name:
            packages.add(Package("pip", name.replace("_", "-"), version))
    return sorted(packages, key=lambda package: (package.name.lower(), package.version))


def system_name(os_release: str) -> str:
    """The distribution's name, from /etc/os-release; "" if there is none."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', os_release, re.MULTILINE)
    return match[1] if match else ""


def metadata(labels: dict[str, str], definition: str, scripts: dict[str, str]) -> dict[str, object]:
    """The text of METADATA; `scripts` by the names of Apptainer's folder in the image."""
    env = "env/90-environment.sh"
    attributes: dict[str, object] = {"labels": labels, "deffile": definition}
    if scripts.get(env):
        attributes["environment"] = {f"/.singularity.d/{env}": scripts[env]}
    for name in ("runscript", "startscript", "test"):
        if scripts.get(name):
            attributes[name] = scripts[name]
    return {"data": {"attributes": attributes}, "type": "container"}


def labels(contents: Contents, defined: dict[str, str]) -> dict[str, str]:
    """The image's labels: those of its definition, without the time and the builder's folders."""
    prefix = "org.label-schema."
    inherited = {
        key: value
        for key, value in defined.items()
        if not key.startswith((f"{prefix}usage.singularity.deffile", f"{prefix}build-date"))
    }
    return inherited | {
        # Apptainer would write the current time.
        f"{prefix}build-date": "not recorded (same sources, same image)",
        "org.opencontainers.image.title": contents.title,
        "org.opencontainers.image.version": contents.version,
        "slipway.environment": contents.environment,
        "slipway.origin": contents.origin,
        "slipway.sources": contents.sources,
    }
