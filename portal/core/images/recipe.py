"""Sources of an image: a recipe's folder, an Apptainer definition, or an address."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from portal.core.images.names import ImageError, ImageName

FORMAT = 1
"""Incremented when the same sources give a different image, so that all are rebuilt."""
AGENT = re.compile(r"^\s*bootstrap\s*:\s*(\S+)", re.IGNORECASE | re.MULTILINE)
ORIGIN = re.compile(r"^\s*from\s*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
SECTION = re.compile(r"^\s*%(post|files|setup|pre|test)\b", re.IGNORECASE | re.MULTILINE)
ADDRESS = re.compile(
    r"^(docker|oci|oci-archive|docker-archive|docker-daemon|library|oras|shub)://?\S+$"
)
ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SUITE = re.compile(r"[a-z]{2,30}")
KNOWN = frozenset(
    "arch busybox debootstrap dnf docker docker-archive docker-daemon library localimage oci "
    "oci-archive oras scratch shub yum zypper".split()
)
OWN_ARGUMENTS = frozenset({"base", "recipe"})
"""The arguments that the builder sets: paths of the base system and of the recipe's folder."""


@dataclass(frozen=True)
class Sources:
    """The sources of an image; `files`: contents of the recipe's files, by relative name."""

    name: ImageName
    definition: str = ""
    """The definition; "" for an address alone."""
    address: str = ""
    suite: str = ""
    """The Debian release of the base system; "" if the definition needs none."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    """The source of the base system, if it is not debootstrap."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The kinds of Bootstrap, one for each stage."""
        if self.address:
            return (self.address.partition(":")[0],)
        return tuple(agent.lower() for agent in AGENT.findall(self.definition))

    @property
    def origin(self) -> str:
        """The source of the first stage, for display."""
        if self.address:
            return self.address
        if self.suite:
            return self.base or f"Debian {self.suite}"
        match = ORIGIN.search(self.definition)
        return f"{self.agents[0]}: {match[1]}" if match else self.agents[0]

    @property
    def runs_commands(self) -> bool:
        """Whether building runs commands or copies files as root of the image."""
        return bool(SECTION.search(self.definition))

    @property
    def digest(self) -> str:
        """SHA-256 of everything that affects the result of a build; titles do not."""
        inputs = {
            "format": FORMAT,
            "address": self.address,
            "definition": self.definition,
            "suite": self.suite,
            "base": self.base,
            "arguments": dict(sorted(self.arguments.items())),
            "files": {
                name: hashlib.sha256(content).hexdigest()
                for name, content in sorted(self.files.items())
                if name not in ("image.toml", "test.sh")
            },
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def check_sources(sources: Sources) -> None:
    """Raise ImageError for sources that cannot be built, with the reason."""
    if sources.address:
        _check_address(sources.address)
    elif not sources.agents:
        raise ImageError(f"{sources.name}: the definition has no line `Bootstrap:`")
    for agent in () if sources.address else sources.agents:
        if agent not in KNOWN:
            raise ImageError(
                f"{sources.name}: Apptainer has no `Bootstrap: {agent}`; it has "
                f"{', '.join(sorted(KNOWN))}"
            )
    if "{{ base }}" in sources.definition and not sources.suite:
        raise ImageError(
            f"{sources.name}: the definition starts from {{{{ base }}}}, so the file `base` beside "
            "it has to name a Debian release, such as trixie"
        )


def _check_address(address: str) -> None:
    if not ADDRESS.match(address):
        raise ImageError(
            f"--from {address}: write the address of an image, such as "
            "docker://registry.example.org/team/tool:1.2 or oci-archive:/path/tool.tar"
        )


def read_suite(text: str, path: str) -> str:
    """Parse the release in a file `base`; raises ImageError."""
    suite = text.strip()
    if not SUITE.fullmatch(suite):
        raise ImageError(f"{path} has to name one Debian release, such as trixie")
    return suite


def read_arguments(texts: list[str]) -> dict[str, str]:
    """The values of --build-arg NAME=VALUE; raises ImageError."""
    arguments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not ARGUMENT.fullmatch(name):
            raise ImageError(f"--build-arg {text}: write NAME=VALUE")
        if name in OWN_ARGUMENTS:
            raise ImageError(f"--build-arg {name}: the builder sets this itself")
        arguments[name] = value
    return arguments


def described(title: str, description: str) -> str:
    """The text of image.toml for an image without a recipe."""
    lines = [f"title = {json.dumps(title, ensure_ascii=False)}"]
    if description:
        lines.append(f"description = {json.dumps(description, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
