"""Requirements of a build on a machine, and alternatives if one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from portal.core.images.names import ImageError
from portal.core.images.recipe import Sources

PROGRAMS = ("apptainer", "mksquashfs", "unshare", "newuidmap", "debootstrap", "dnf", "yum",
            "rpm", "zypper", "pacstrap", "fakeroot", "srun")  # fmt: skip
"""The programs whose presence is checked."""
_AGENT_PROGRAMS = {"debootstrap": ("debootstrap",), "dnf": ("dnf", "yum"), "yum": ("yum", "dnf"),
                   "zypper": ("zypper",), "arch": ("pacstrap",)}  # fmt: skip
_RPM = ("dnf", "yum", "zypper")
_PACKAGES = {"mksquashfs": "squashfs-tools", "newuidmap": "uidmap, or shadow-utils",
             "unshare": "util-linux"}  # fmt: skip
ELSEWHERE = "build on another machine, or on a node with --on-cluster"


@dataclass(frozen=True)
class Machine:
    """Programs and permissions of this machine."""

    programs: frozenset[str]
    user: str
    root: bool
    all_capabilities: bool
    """Whether root has all capabilities; in a container it usually does not."""
    namespaces: bool
    """Whether this user may create user namespaces."""
    architecture: str
    """Output of `uname -m`."""
    ids: bool
    """Whether /etc/subuid and /etc/subgid give this user ids to map."""

    @property
    def maps_ids(self) -> bool:
        """Whether a user namespace can have these ids."""
        return self.ids and self.namespaces and "newuidmap" in self.programs


def missing(sources: Sources, machine: Machine, cached: bool) -> list[str]:
    """Everything that a build lacks on this machine, each with instructions.

    `cached`: the base system is cached, so that debootstrap is not needed.
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
        providers = _AGENT_PROGRAMS.get(agent, ())
        absent = [] if machine.programs.intersection(providers) else list(providers[:1])
        absent += [name for name in ("rpm",) if agent in _RPM and name not in machine.programs]
        if providers and absent:
            yield (
                f"not installed: {', '.join(absent)}; the definition has `Bootstrap: {agent}`: "
                "install that; or start from a registry's image (`Bootstrap: docker`); or "
                f"{ELSEWHERE}"
            )


def _rights(machine: Machine) -> Iterator[str]:
    if machine.namespaces or (machine.root and machine.all_capabilities):
        return
    if "unshare" not in machine.programs:
        yield (
            f"unshare is not installed (package {_PACKAGES['unshare']}), which builds without all "
            f"rights of root need: install it; or {ELSEWHERE}"
        )
        return
    user = "root of a container" if machine.root else machine.user
    yield (
        f"{user} may not create user namespaces, so Apptainer cannot build without root: set "
        "`sysctl user.max_user_namespaces` above 0 (and on Debian and Ubuntu "
        "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); or "
        f"build as root; or {ELSEWHERE}"
    )


def fakeroot(sources: Sources, machine: Machine, requested: bool | None) -> bool:
    """Whether to build with --fakeroot; `requested`: the user's option, None: automatic.

    Raises ImageError if it is requested, or the only way, and not possible.
    """
    if requested is False:
        if machine.root and machine.all_capabilities:
            return False
        if not sources.runs_commands:
            return False
        raise ImageError(
            "--no-fakeroot: the definition runs commands as root, and "
            f"{machine.user} has not all rights of root here"
        )
    possible = machine.namespaces and machine.ids
    if possible and "newuidmap" not in machine.programs:
        if machine.root and machine.all_capabilities and not requested:
            return False
        # Apptainer requires it even where it does not need the ids.
        raise ImageError(
            f"newuidmap is not installed (package {_PACKAGES['newuidmap']}), and /etc/subuid has "
            f"ids for {machine.user}, which need it: install it; or {ELSEWHERE}"
        )
    if possible or (requested and machine.namespaces):
        return True
    if machine.root and machine.all_capabilities:
        return False
    # The command fakeroot cannot give the files of a base system their owners.
    if not sources.runs_commands or ("fakeroot" in machine.programs and not sources.suite):
        return machine.namespaces
    raise ImageError(
        f"/etc/subuid and /etc/subgid have no line for {machine.user}, and the definition runs "
        f"commands as root: root adds `{machine.user}:100000:65536` to both files (other numbers "
        "for each user), or installs `fakeroot`, which is enough for definitions that start from "
        f"an image with a C library and change no owners; or {ELSEWHERE}; `--from docker://…` "
        "needs neither"
    )
