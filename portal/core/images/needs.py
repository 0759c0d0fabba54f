"""What a build needs of a machine, and what else works where that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from portal.core.images.names import ImageError
from portal.core.images.recipe import Sources

PROGRAMS = ("apptainer", "mksquashfs", "unshare", "newuidmap", "debootstrap", "dnf", "yum",
            "zypper", "pacstrap", "fakeroot", "srun")  # fmt: skip
"""The programs that are looked for."""
_AGENT_PROGRAMS = {"debootstrap": ("debootstrap",), "dnf": ("dnf", "yum"), "yum": ("yum", "dnf"),
                   "zypper": ("zypper",), "arch": ("pacstrap",)}  # fmt: skip
_PACKAGES = {"mksquashfs": "squashfs-tools", "newuidmap": "uidmap, or shadow-utils",
             "pacstrap": "arch-install-scripts"}  # fmt: skip
ELSEWHERE = "build on another machine, or on a node with --on-cluster"


@dataclass(frozen=True)
class Machine:
    """What this machine has."""

    programs: frozenset[str]
    user: str
    root: bool
    all_capabilities: bool
    """Whether root has every capability, which root in a container usually has not."""
    namespaces: bool
    """Whether this user may create user namespaces."""
    architecture: str
    """As `uname -m` says."""
    ids: bool
    """Whether /etc/subuid and /etc/subgid give this user ids to map."""


def missing(sources: Sources, machine: Machine, cached: bool) -> list[str]:
    """Everything that a build lacks here, each with what to do.

    `cached`: the base system is at hand, so that debootstrap is not needed.
    """
    return [*_programs(sources, machine, cached), *_rights(machine)]


def _programs(sources: Sources, machine: Machine, cached: bool) -> Iterator[str]:
    for name in ("apptainer", "mksquashfs"):
        if name not in machine.programs:
            package = _PACKAGES.get(name, name)
            yield f"{name} is not installed (package {package}): install it, or {ELSEWHERE}"
    if sources.suite and not (sources.base or cached or "debootstrap" in machine.programs):
        yield (
            f"debootstrap is not installed, and the recipe starts from Debian {sources.suite}: "
            "install it; or take the base system from elsewhere with "
            f"`--base docker://debian:{sources.suite}-slim` (a registry, a .sif or a folder); or "
            f"{ELSEWHERE}"
        )
    for agent in sources.agents:
        known = _AGENT_PROGRAMS.get(agent, ())
        if known and not machine.programs.intersection(known):
            yield (
                f"{known[0]} is not installed, and the definition has `Bootstrap: {agent}`: "
                "install it; or start from a registry's image (`Bootstrap: docker`); or "
                f"{ELSEWHERE}"
            )


def _rights(machine: Machine) -> Iterator[str]:
    if machine.namespaces or (machine.root and machine.all_capabilities):
        return
    who = "root of a container" if machine.root else machine.user
    yield (
        f"{who} may not create user namespaces, so Apptainer cannot build without root: set "
        "`sysctl user.max_user_namespaces` above 0 (and on Debian and Ubuntu "
        "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); or "
        f"build as root; or {ELSEWHERE}"
    )


def fakeroot(sources: Sources, machine: Machine, wanted: bool | None) -> bool:
    """Whether to build with --fakeroot; `wanted`: what the user says, None decides here.

    Raises ImageError where it is wanted, or the only way, and not possible.
    """
    if wanted is False:
        if machine.root and machine.all_capabilities:
            return False
        if not sources.runs_commands:
            return False
        raise ImageError(
            "--no-fakeroot: the definition runs commands as root, and "
            f"{machine.user} has not all rights of root here"
        )
    possible = machine.namespaces and machine.ids
    if possible and not machine.root and "newuidmap" not in machine.programs:
        raise ImageError(f"newuidmap is not installed (package {_PACKAGES['newuidmap']})")
    if possible or (wanted and machine.namespaces):
        return True
    if machine.root and machine.all_capabilities:
        return False
    if not sources.runs_commands or "fakeroot" in machine.programs:
        return machine.namespaces
    raise ImageError(
        f"/etc/subuid and /etc/subgid have no line for {machine.user}, and the definition runs "
        f"commands as root: root adds `{machine.user}:100000:65536` to both files (other numbers "
        "for each user), or installs `fakeroot`, which is enough for definitions that change no "
        f"owners; or {ELSEWHERE}; `--from docker://…` needs neither"
    )
