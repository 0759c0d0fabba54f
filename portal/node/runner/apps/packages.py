"""Folders for packages that users install, which also work in their next sessions.

Images are read-only. pip, R, Julia and conda install into a folder per environment and version: in
the first mounted folder that only the user can write to, or else in the session. The apps get
variables that point there, which JupyterLab's own Python ignores.

A virtual environment in the image gets another one on top of it: pip does not install for a user in
one that does not see the system's packages.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FOLDER = ".slipway-packages"
JUPYTER_DATA = ".local/share/jupyter"
ACL = "system.posix_acl_access"
# Not in a folder's name, which is in lists of paths, in scripts and in R_LIBS_USER (R expands %V).
SPECIAL = frozenset(":%\"'$`\\")
LARGEST_SCRIPT = 65536
NUMBERED = re.compile(r"python3\.[0-9]+")
# As pip writes it for long paths: a command for the shell, a string for Python.
BEGIN = "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"


class Packages:
    """`name`: of the environment and version; `folders`: kept ones, relative to the home."""

    __slots__ = ("folders", "name")

    def __init__(self, name: str, folders: tuple[str, ...]) -> None:
        self.name = name
        self.folders = folders


def environment(
    packages: Packages | None, directory: str, toolkit: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return variables for every app, and create the folders that they name."""
    runtime = f"{directory}/jupyterlab/runtime"
    os.makedirs(runtime, 0o700, exist_ok=True)
    python_path = environ.get("PYTHONPATH", "")
    variables = {
        "JUPYTER_RUNTIME_DIR": runtime,
        "PYTHONPATH": f"{python_path}:{toolkit}/python" if python_path else f"{toolkit}/python",
        "SLIPWAY_PATH": environ.get("PATH", os.defpath),
    }
    if packages is None:
        return variables
    home = environ.get("HOME", "/")
    for folder in (*packages.folders, home):
        try:
            prefix = _prepare(os.path.join(home, folder).rstrip("/"), packages.name)
            python = _python(prefix, directory, toolkit, environ)
            package_variables = {**python, **_others(prefix, environ)}
            is_kept = folder in packages.folders
            if is_kept and environ.get("SLIPWAY_HOME") != "persistent":
                _keep_kernels(prefix, home)
        except OSError:
            continue  # it is full, read-only, writable by others or has a special name
        return {
            **variables,
            **package_variables,
            "SLIPWAY_PACKAGES": "kept" if is_kept else "session",
        }
    return variables


def _prepare(folder: str, name: str) -> str:
    """Create the packages' folder; raises PermissionError if other users can write there."""
    if SPECIAL.intersection(folder):
        raise OSError(f"package managers would not understand its name: {folder}")
    if not os.access(folder, os.W_OK | os.X_OK) or _others_write(folder, os.stat(folder)):
        raise PermissionError(folder)
    root = f"{folder}/{FOLDER}"
    for path in (root, f"{root}/{name}"):
        with suppress(FileExistsError):  # another session may make it now
            os.mkdir(path, 0o700)
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or _others_write(path, status):
            raise PermissionError(path)
    return f"{root}/{name}"


def _others_write(path: str, status: os.stat_result) -> bool:
    """Whether other users may write there: its content runs as this user."""
    if status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH:
        return True
    # A group of the same number is the user's own; with an ACL these bits are of others, too.
    if not status.st_mode & stat.S_IWGRP:
        return False
    return status.st_gid != status.st_uid or _has_acl(path)


def _has_acl(path: str) -> bool:
    try:
        return bool(os.getxattr(path, ACL))
    except OSError:
        return False


def _python(
    prefix: str, directory: str, toolkit: str, environ: Mapping[str, str]
) -> dict[str, str]:
    search = environ.get("PATH", os.defpath)
    python = shutil.which("python3", path=search)
    if python is None:
        return {}
    base, image = f"{prefix}/python", _virtual_environment(python)
    data = [f"{environ.get('HOME', '/')}/{JUPYTER_DATA}", f"{base}/share/jupyter"]
    variables = {"PYTHONUSERBASE": base}
    if image:
        _stack(base, image, python, search)
        _add_hook(base, toolkit, image, _versions(image))
        _copy_scripts(image, f"{base}/bin/python3", f"{directory}/bin")
        search = f"{directory}/bin:{search}"
        data.append(f"{image}/share/jupyter")
        variables["SLIPWAY_PYTHON"] = f"{base}/bin/python3"
    else:
        name = os.path.basename(os.path.realpath(python))
        _add_hook(base, toolkit, "", [name] if NUMBERED.fullmatch(name) else [])
        # The image's marker protects its own packages, which are read-only.
        variables["PIP_BREAK_SYSTEM_PACKAGES"] = "1"
    variables["PATH"] = f"{base}/bin:{search}"
    variables["JUPYTER_PATH"] = ":".join(data) + _after(environ, "JUPYTER_PATH")
    return variables


def _others(prefix: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables of other package managers, for those that the image has."""
    search = environ.get("PATH", os.defpath)
    variables = {}
    if shutil.which("R", path=search):
        # R looks only into folders that are there when it starts.
        os.makedirs(f"{prefix}/R", 0o700, exist_ok=True)
        variables["R_LIBS_USER"] = f"{prefix}/R" + _after(environ, "R_LIBS_USER")
    if shutil.which("julia", path=search):
        # The empty entry stands for Julia's own paths.
        after = environ.get("JULIA_DEPOT_PATH", "")
        variables["JULIA_DEPOT_PATH"] = f"{prefix}/julia:{after}"
    if any(shutil.which(name, path=search) for name in ("conda", "mamba", "micromamba")):
        variables["CONDA_ENVS_PATH"] = f"{prefix}/conda/envs" + _after(environ, "CONDA_ENVS_PATH")
        variables["CONDA_PKGS_DIRS"] = f"{prefix}/conda/pkgs"
    return variables


def _after(environ: Mapping[str, str], name: str) -> str:
    return f":{environ[name]}" if environ.get(name) else ""


def _virtual_environment(python: str) -> str:
    """Return the prefix of a Python in a virtual environment; "" for others."""
    folder = os.path.dirname(python)
    for prefix in (folder, os.path.dirname(folder)):
        if os.path.isfile(f"{prefix}/pyvenv.cfg"):
            return prefix
    return ""


def _stack(base: str, image: str, python: str, search: str) -> None:
    """Create or update a virtual environment on top of the image's."""
    with open(f"{image}/pyvenv.cfg", encoding="utf-8") as file:
        pairs = (line.partition("=") for line in file)
        config = {name.strip().lower(): value.strip() for name, _, value in pairs}
    lines = {"home": config.get("home", "/usr/bin"), "include-system-site-packages": "true"}
    if "version" in config:
        lines["version"] = config["version"]
    os.makedirs(f"{base}/bin", 0o700, exist_ok=True)
    _write(f"{base}/pyvenv.cfg", "".join(f"{name} = {value}\n" for name, value in lines.items()))
    _link(python, f"{base}/bin/python3")
    plain = shutil.which("python", path=search)
    if plain is None or os.path.realpath(plain) == os.path.realpath(python):
        _link("python3", f"{base}/bin/python")


def _add_hook(base: str, toolkit: str, image: str, versions: Iterable[str]) -> None:
    """Let each Python see the image's packages, and load slipway_python whatever PYTHONPATH is."""
    module = f"{toolkit}/python/slipway_python.py"
    load = f"import os; os.path.exists({module!r}) and __import__('slipway_python')"
    for version in versions:
        site = f"lib/{version}/site-packages"
        os.makedirs(f"{base}/{site}", 0o700, exist_ok=True)
        add = f"import site; site.addsitedir({f'{image}/{site}'!r})\n" if image else ""
        _write(f"{base}/{site}/slipway.pth", f"{add}{toolkit}/python\n{load}\n")


def _versions(image: str) -> Iterator[str]:
    for name in os.listdir(f"{image}/lib"):
        if name.startswith("python3") and os.path.isdir(f"{image}/lib/{name}/site-packages"):
            yield name


def _copy_scripts(image: str, python: str, target: str) -> None:
    """Copy the image's Python programs, so that they run in the environment on top of it."""
    os.makedirs(target, 0o700, exist_ok=True)
    begin, mark = BEGIN.format(python=python).encode(), f"{image}/bin/".encode()
    for entry in os.scandir(f"{image}/bin"):
        if not entry.is_file() or entry.stat().st_size > LARGEST_SCRIPT:
            continue
        with open(entry.path, "rb") as file:
            first, _, text = file.read().partition(b"\n")
        if first.startswith(b"#!") and mark in first:
            path = f"{target}/{entry.name}"
            with open(path, "wb") as copy:
                copy.write(begin + text)
            os.chmod(path, 0o700)


def _keep_kernels(prefix: str, home: str) -> None:
    """Store kernels that users register (ipykernel install --user) with their packages."""
    kernels, link = f"{prefix}/python/share/jupyter/kernels", f"{home}/{JUPYTER_DATA}/kernels"
    if not os.path.lexists(link):
        os.makedirs(kernels, 0o700, exist_ok=True)
        os.makedirs(os.path.dirname(link), 0o700, exist_ok=True)
        os.symlink(kernels, link)


def _write(path: str, text: str) -> None:
    """Replace a file atomically if its content differs: other sessions may be reading it."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except OSError:
        pass
    part = _part_of(path)
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


def _link(target: str, path: str) -> None:
    if os.path.islink(path) and os.readlink(path) == target:
        return
    part = _part_of(path)
    os.symlink(target, part)
    os.replace(part, path)


def _part_of(path: str) -> str:
    """Return a unique temporary name; concurrent sessions may have the same PIDs, in namespaces."""
    return f"{path}.{os.urandom(8).hex()}"
