"""Files that sessions need: templates, apps, images and the toolkit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import portal.node.runner
from portal.cli.findings import Finding, warn
from portal.config import Settings
from portal.core.apps.catalog import Catalog
from portal.web.branding import read_logo

REQUIRED_TEMPLATES = (
    "job/session.sh.j2",
    "haproxy/portal.cfg.j2",
    "systemd/slipway-web.service.j2",
    "html",
)
"""Templates whose presence is checked."""
SQUASHFS = b"hsqs"
MARK = b"slipway-runner "
"""Precedes the runner's digest, which follows the file system in the toolkit's file."""
LINE = len(MARK) + 64 + 1


def check_templates(settings: Settings) -> Iterator[Finding]:
    """Check the templates, on which the other checks depend."""
    folder = Path(settings.sessions.templates)
    missing = [name for name in REQUIRED_TEMPLATES if not (folder / name).exists()]
    if not folder.is_dir():
        text = f"sessions.templates: there is no folder {folder}; leave it out for the usual ones"
        yield Finding(False, text)
    elif missing:
        yield Finding(
            False,
            f"sessions.templates: {folder} lacks {', '.join(missing)}; copy them from this "
            "release's, or leave the setting out",
        )


def check_logos(settings: Settings) -> Iterator[Finding]:
    """Check the site's logos; Slipway's own is shown instead of an invalid one."""
    for name in ("logo", "logo_dark"):
        try:
            if path := getattr(settings.web, name):
                read_logo(path)
        except ValueError as error:
            yield Finding(False, f"web.{name}: {error}")


def check_catalog(settings: Settings, catalog: Catalog) -> Iterator[Finding]:
    """Check apps and images; consequences of a missing folder are not repeated."""
    missing = [
        Path(folder) for folder in settings.sessions.app_folders if not Path(folder).is_dir()
    ]
    for folder in missing:
        name = "site_apps" if str(folder) == settings.sessions.site_apps else "apps"
        yield Finding(False, f"sessions.{name}: there is no folder {folder}")
    images = Path(settings.sessions.images)
    if not images.is_dir():
        yield Finding(False, f"0 images: there is no folder {images} (sessions.images)")
    else:
        number = len(catalog.images)
        advice = "" if number else "; `slipway images build` makes them"
        yield Finding(bool(number), f"{number} images in {images}{advice}")
    if missing:
        return
    folders = " and ".join(settings.sessions.app_folders)
    yield Finding(bool(catalog.apps), f"{len(catalog.apps)} apps in {folders}")
    for problem in catalog.problems:
        yield Finding(False, problem)


def check_toolkit(file: Path) -> Iterator[Finding]:
    """Whether the toolkit exists, can be read, and contains the runner of this release."""
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(SQUASHFS))
            stream.seek(0, 2)
            stream.seek(max(stream.tell() - LINE, 0))
            end = stream.read()
    except OSError as error:
        yield Finding(
            False,
            f"sessions.toolkit {file}: {error.strerror}; images/toolkit/build.sh makes it, and it "
            "must have the same path on all nodes",
        )
        return
    if begin != SQUASHFS:
        yield Finding(False, f"sessions.toolkit {file} is not a squashfs image")
        return
    if not end.startswith(MARK):
        text = "does not say of which release it is: make it again with images/toolkit/build.sh"
        yield warn(f"the toolkit {file} {text}")
    elif end[len(MARK) :].strip().decode(errors="replace") != runner_digest():
        text = "is of another release than this portal: make it again with images/toolkit/build.sh"
        yield Finding(False, f"the toolkit {file} {text}")
    else:
        yield Finding(True, f"the toolkit {file} is of this release")


def runner_digest() -> str:
    """SHA-256 of this release's runner, as images/toolkit/build.sh calculates it."""
    folder = Path(portal.node.runner.__file__).parent
    names = sorted(f"./{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.py"))
    lines = (f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
