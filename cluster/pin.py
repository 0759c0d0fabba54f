#!/usr/bin/env python3
"""Regenerates the files of pinned packages with current versions and their hashes.

The versions of requirements.txt and requirements-dev.txt are those that pip resolves for the ranges
of pyproject.toml with the oldest supported Python; the hashes are those of the wheels for every
Python and machine below. pip uses the package index that it is configured for. `pin.py --keep`
keeps the versions and only renews the hashes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
GLIBCS = (17, 24, 27, 28, 31, 34, 35, 39)
"""Minor versions of glibc 2 whose wheels are considered."""
OLDER = ("manylinux2014", "manylinux2010", "manylinux1", "linux")
"""What wheels for still older ones are called."""
RUNTIME = ("requirements.txt", "What the portal image installs")
PC = MACHINES[:1]
CLIENTS = {"cluster/clients/requirements.txt": ("3.13", MACHINES)}
"""Programs that submit jobs in tests: snakemake, submitit, Dask; versions are chosen by hand."""
WITHOUT_WHEEL = frozenset(("connection-pool",))
"""Packages that are built where they are installed; their hashes stay."""
IMAGES = {
    "images/cpp/10/requirements.txt": ("3.9", MACHINES),
    "images/cpp/14/requirements.txt": ("3.13", MACHINES),
    "images/python/3.11/requirements.txt": ("3.11", MACHINES),
    "images/python/3.13/requirements.txt": ("3.13", MACHINES),
    "images/pytorch/1.13/requirements.txt": ("3.11", MACHINES),
    "images/pytorch/1.13/requirements-gpu.txt": ("3.11", PC),
    "images/pytorch/2.6/requirements.txt": ("3.13", MACHINES),
    "images/pytorch/2.6/requirements-gpu.txt": ("3.13", PC),
    "images/r/4.5/requirements.txt": ("3.13", MACHINES),
    "images/tensorflow/2.21/requirements.txt": ("3.13", PC),
    "images/tensorflow/2.21/requirements-cpu.txt": ("3.13", PC),
    "images/tensorflow/2.21/requirements-gpu.txt": ("3.13", PC),
    "images/tensorflow/2.8/requirements.txt": ("3.9", PC),
    "images/tensorflow/2.8/requirements-cpu.txt": ("3.9", PC),
    "images/tensorflow/2.8/requirements-gpu.txt": ("3.9", PC),
}
"""Packages of session images: Python and machines; versions are chosen by hand."""
HUBS = {f"cluster/hub/requirements-{v}.txt": f"jupyterhub=={v}.*" for v in ("5.5", "6.1")}
"""What the demo's JupyterHub needs beyond requirements.txt, in a Python of its Debian."""
HUB_PYTHONS = ("3.13",)
DEV = ("requirements-dev.txt", "What the tests need beyond requirements.txt")

Pins = dict[str, str]
Hashes = dict[str, set[str]]
Item = dict[str, Any]


def report(
    pip: Path, wanted: Iterable[str], python: str, machine: str, deps: bool = True
) -> list[Item]:
    """What pip would install for the requirements `wanted`, on that Python and machine."""
    with tempfile.TemporaryDirectory() as folder:
        found, file = Path(folder, "report.json"), Path(folder, "wanted")
        file.write_text("\n".join(wanted) + "\n")
        platforms = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBCS]
        platforms += [f"{name}_{machine}" for name in OLDER]
        command: list[str | Path] = [pip, "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary", ":all:", "--python-version", python, "--report", found]
        command += ["--implementation", "cp", "--target", Path(folder, "none"), "-r", file]
        command += [word for name in platforms for word in ("--platform", name)]
        # Some versions of pip check a wheel's Requires-Python against the Python that they run in.
        fixed = [] if deps else ["--no-deps", "--ignore-requires-python"]
        subprocess.run([*command, *fixed], check=True)
        items: list[Item] = json.loads(found.read_text())["install"]
        return items


def versions(items: Iterable[Item]) -> Pins:
    """The versions in a report, by name."""
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in items}


def hashes(items: Iterable[Item]) -> dict[str, str]:
    """The SHA-256 of each package's file in a report, by normalised name."""
    found = {}
    for item in items:
        name = item["metadata"]["name"]
        digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if not digest:
            raise SystemExit(f"the package index gives no hash for {name}")
        found[normalised(name)] = digest
    return found


def normalised(name: str) -> str:
    """A package's normalised name, as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(name: str) -> Pins:
    """The versions in a file that this script wrote."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ \\\n]+)", text, re.MULTILINE))


def write(name: str, title: str, pins: Pins, known: Hashes) -> None:
    """Write a file of pins."""
    heading = (
        f"# {title}: exact versions for the ranges of pyproject.toml.\n"
        "# Made by cluster/pin.py; change pyproject.toml and run it again.\n"
    )
    (ROOT / name).write_text(heading + listed(pins, known), encoding="utf-8")


def listed(pins: Pins, known: Hashes) -> str:
    """The lines of a file of pins."""
    lines = []
    for package in sorted(pins, key=str.lower):
        digests = sorted(known[normalised(package)])
        lines.append(
            f"{package}=={pins[package]}"
            + "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests)
        )
    return "\n".join(lines) + "\n"


def stored_hashes(text: str, package: str) -> set[str]:
    """The hashes of a package in the text of a file of pins."""
    entry = re.search(rf"^{re.escape(package)}==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry[0])) if entry else set()


def write_image(pip: Path, name: str, python: str, machines: Iterable[str]) -> None:
    """Renew the hashes of packages whose versions are fixed; the comments before them stay."""
    text = (ROOT / name).read_text(encoding="utf-8")
    heading = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    pins = read(name)
    built = {package for package in pins if normalised(package) in WITHOUT_WHEEL}
    known: Hashes = {normalised(package): stored_hashes(text, package) for package in built}
    wheels = {package: pins[package] for package in pins if package not in built}
    gather(pip, wheels, (python,), known, machines)
    (ROOT / name).write_text(heading + listed(pins, known), encoding="utf-8")


def write_hub(pip: Path, name: str, wanted: str, runtime: Pins, keep: bool) -> None:
    """Write the packages of one version of JupyterHub."""
    fixed = [f"{package}=={version}" for package, version in runtime.items()]
    if keep:
        pins = read(name)
    else:
        found = versions(report(pip, [*fixed, wanted, "requests"], HUB_PYTHONS[0], MACHINES[0]))
        known_names = {normalised(package) for package in runtime}
        pins = {one: found[one] for one in found if normalised(one) not in known_names}
    known: Hashes = {}
    gather(pip, pins, HUB_PYTHONS, known)
    heading = (
        "# What the demo's JupyterHub needs beyond requirements.txt: exact versions.\n"
        "# Made by cluster/pin.py.\n"
    )
    (ROOT / name).write_text(heading + listed(pins, known), encoding="utf-8")


def gather(
    pip: Path,
    pins: Pins,
    pythons: Iterable[str],
    known: Hashes,
    machines: Iterable[str] = MACHINES,
) -> None:
    """Add the hashes of these versions for these Pythons and machines."""
    wanted = [f"{name}=={version}" for name, version in pins.items()]
    for python in pythons:
        for machine in machines:
            print(f"hashes for Python {python} on {machine}", file=sys.stderr)
            for name, digest in hashes(report(pip, wanted, python, machine, False)).items():
                known.setdefault(name, set()).add(digest)


def resolve(pip: Path) -> tuple[Pins, Pins]:
    """Current versions: of the portal's requirements, and of the tests' additional ones."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = whole["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["postgresql"] + whole["build-system"]["requires"]
    runtime = versions(report(pip, wanted, PYTHONS[0], MACHINES[0]))
    fixed = [f"{name}=={version}" for name, version in runtime.items()]
    dev = versions(report(pip, fixed + extras["dev"], PYTHONS[0], MACHINES[0]))
    return runtime, {name: version for name, version in dev.items() if name not in runtime}


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the versions")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = Path(folder, "bin", "pip")
        runtime, dev = (read(RUNTIME[0]), read(DEV[0])) if keep else resolve(pip)
        known: Hashes = {}
        gather(pip, runtime | dev, PYTHONS, known)
        for image, (python, machines) in (IMAGES | CLIENTS).items():
            write_image(pip, image, python, machines)
        for name, wanted in HUBS.items():
            write_hub(pip, name, wanted, runtime, keep)
    write(*RUNTIME, runtime, known)
    write(*DEV, dev, known)


if __name__ == "__main__":
    main()
