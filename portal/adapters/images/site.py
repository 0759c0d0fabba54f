"""This machine's mirrors, proxies and certificates, lent to an image for its build."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

INSIDE = Path("run/site/ca.crt")
"""Path of the certificates in an image during its build."""
NPMRC = Path("run/site/npmrc")
"""Path of npm's settings, for recipes that use npm."""
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Site:
    """Files that a build borrows; missing and empty files are left out."""

    mirror: str = ""
    apt_conf: Path | None = None
    pip_conf: Path | None = None
    ca: Path | None = None
    npmrc: Path | None = None

    @classmethod
    def of_machine(cls, folder: Path = Path("/run/site")) -> Site:
        """The files named by environment variables and this folder."""
        mirror = folder / "mirror"
        words = mirror.read_text(encoding="utf-8").split() if mirror.is_file() else []
        return cls(
            mirror=os.environ.get("SLIPWAY_MIRROR") or (words[0] if words else ""),
            apt_conf=_filled(str(folder / "apt.conf")),
            pip_conf=_filled(os.environ.get("PIP_CONFIG_FILE", "")),
            ca=_filled(os.environ.get("SITE_CA", "")),
            npmrc=_filled(os.environ.get("NPM_CONFIG_USERCONFIG") or str(folder / "npmrc")),
        )

    def lend(self, root: Path, suite: str) -> None:
        """Copy the files into an image; its original /etc/apt is kept next to its folder."""
        apt = root / "etc/apt"
        shutil.copytree(apt, _original(root), symlinks=True)
        if self.mirror:
            (apt / "sources.list").unlink(missing_ok=True)
            (apt / "sources.list.d").mkdir(exist_ok=True)
            (apt / "sources.list.d/site.sources").write_text(_sources(self.mirror, suite))
        if self.apt_conf is not None:
            shutil.copyfile(self.apt_conf, apt / "apt.conf.d/90site")
        if self.pip_conf is not None:
            shutil.copyfile(self.pip_conf, root / "etc/pip.conf")
        for file, target in ((self.ca, INSIDE), (self.npmrc, NPMRC)):
            if file is not None:
                (root / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, root / target)


def borrowed(root: Path) -> Path | None:
    """The image's original /etc/apt; None if no settings were lent to it."""
    original = _original(root)
    return original if original.is_dir() else None


def _original(root: Path) -> Path:
    return root.parent / "apt.original"


def _filled(text: str) -> Path | None:
    path = Path(text)
    return path if text and path.is_file() and path.stat().st_size else None


def _sources(mirror: str, suite: str) -> str:
    entries = (
        (mirror, f"{suite} {suite}-updates"),
        (f"{mirror.rstrip('/')}-security", f"{suite}-security"),
    )
    return "\n".join(
        f"Types: deb\nURIs: {uri}\nSuites: {suites}\nComponents: main\nSigned-By: {_KEYRING}\n"
        for uri, suites in entries
    )
