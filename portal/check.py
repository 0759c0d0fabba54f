"""`slipway check`: what is still missing on this site, in the order one would mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.config import Settings
from portal.errors import PortalError
from portal.services import Services
from portal.wiring import wire


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what to do about it if it is not well."""

    ok: bool
    text: str


def check(settings: Settings) -> Iterator[Finding]:
    """Look at everything that the portal depends on; each finding as soon as it is known."""
    keys = settings.state.ca_file("user_ca")
    if not keys.exists():
        yield Finding(False, f"{keys}: run `slipway init`")
        return
    yield Finding(True, f"keys in {keys.parent}")
    known = Path(settings.login.known_hosts)
    yield Finding(known.exists(), f"{known}: the login node's host key (ssh-keyscan, then compare)")
    services = wire(settings)
    catalog = services.sessions.catalog()
    images, apps = len(catalog.images), len(catalog.apps)
    yield Finding(bool(images), f"{images} images in {settings.sessions.images}")
    yield Finding(bool(apps), f"{apps} apps in {settings.sessions.apps}")
    for problem in catalog.problems:
        yield Finding(False, problem)
    yield from _slurm(services)


def _slurm(services: Services) -> Iterator[Finding]:
    login = services.settings.login
    scheduler = services.sessions.scheduler
    questions: list[tuple[str, Callable[[], object]]] = [
        (f"{login.reader}@{login.host} reads the queue (squeue)", scheduler.jobs),
        ("Slurm's partitions (sinfo)", scheduler.partitions),
        ("Slurm's limits (sacctmgr, scontrol)", scheduler.limits),
        ("Slurm's accounting (sacct)", lambda: scheduler.ended(["1"])),
    ]
    for text, ask in questions:
        try:
            ask()
        except PortalError as error:
            yield Finding(False, f"{text}: {error}")
        else:
            yield Finding(True, text)
