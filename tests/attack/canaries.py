"""Runs as root on the login node: what files are like, so that any change of them is noticed.

Read by `python3 -`, with JSON on the command line. Prints JSON. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import struct
import sys

_GET_FLAGS = 0x80086601
SLIPWAYS_OWN = ".slipway"
"""A folder in each home that the portal's programs write."""


def describe(path: str) -> dict[str, object]:
    """Permissions, owner, lists, attributes, times and contents of a file, folder or link.

    Of what is not there, nothing.
    """
    try:
        return _describe(path, os.lstat(path))
    except FileNotFoundError:
        return {}


def _describe(path: str, status: os.stat_result) -> dict[str, object]:
    about: dict[str, object] = {
        "mode": f"{status.st_mode:o}",
        "owner": [status.st_uid, status.st_gid],
        "modified": status.st_mtime_ns,
        "changed": status.st_ctime_ns,
        "attributes": {
            name: os.getxattr(path, name, follow_symlinks=False).hex()
            for name in os.listxattr(path, follow_symlinks=False)
        },
    }
    if stat.S_ISLNK(status.st_mode):
        return about | {"target": os.readlink(path)}
    if stat.S_ISDIR(status.st_mode):
        return about | {"names": sorted(os.listdir(path)), "flags": _flags(path)}
    if not stat.S_ISREG(status.st_mode):
        return about
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return about | {"links": status.st_nlink, "contents": digest, "flags": _flags(path)}


def _flags(path: str) -> int:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(OSError):
            found = fcntl.ioctl(file, _GET_FLAGS, struct.pack("l", 0))
            return int(struct.unpack("l", found)[0])
    finally:
        os.close(file)
    return 0


def tree(top: str) -> dict[str, dict[str, object]]:
    """All that lies at and below a path, without what Slipway keeps there."""
    about = {top: describe(top)}
    for folder, folders, files in os.walk(top):
        if SLIPWAYS_OWN in folders:
            folders.remove(SLIPWAYS_OWN)
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            about[path] = describe(path)
    return about


def of_inodes(folder: str, inodes: list[int]) -> dict[str, dict[str, object]]:
    """The same for these files below a folder, whatever they are called now."""
    about = {}
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            with contextlib.suppress(OSError):
                inode = os.lstat(path).st_ino
                if inode in inodes and (status := describe(path)):
                    about[str(inode)] = status
    return about


def holding(folder: str, word: str) -> list[str]:
    """The files below a folder that contain a word."""
    paths = []
    for above, _, files in os.walk(folder):
        for path in (os.path.join(above, name) for name in files):
            with contextlib.suppress(OSError):
                file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                with os.fdopen(file, "rb") as opened:
                    if word.encode() in opened.read():
                        paths.append(path)
    return paths


def restore(trees: dict[str, dict[str, object]]) -> None:
    """Give files the owner, attributes and permissions that were described."""
    for path, about in trees.items():
        if not about or "target" in about or not os.path.lexists(path) or os.path.islink(path):
            continue
        if "names" in about:
            for name in set(os.listdir(path)).difference(about["names"]):  # type: ignore[arg-type]
                remove(os.path.join(path, name))
        attributes = dict(about["attributes"])  # type: ignore[call-overload]
        for name in os.listxattr(path):
            if name not in attributes:
                os.removexattr(path, name)
        os.chown(path, *about["owner"])  # type: ignore[misc]
        os.chmod(path, stat.S_IMODE(int(str(about["mode"]), 8)))
        for name, value in attributes.items():
            os.setxattr(path, name, bytes.fromhex(value))


def remove(path: str) -> None:
    """Delete what lies there, whatever it is."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def main(text: str) -> None:
    """Print what is asked for."""
    asked = json.loads(text)
    restore(asked.get("restore", {}))
    answer: dict[str, object] = {"trees": {}, "inodes": {}, "holding": []}
    trees: dict[str, object] = {}
    for top in asked.get("trees", []):
        trees |= tree(top)
    answer["trees"] = trees
    tops = {top: describe(top) for top in asked.get("tops", [])}
    for top, about in tops.items():
        if not top.endswith("/storage"):
            about.pop("names", None)
    answer["tops"] = tops
    if asked.get("inodes"):
        answer["inodes"] = of_inodes(asked["folder"], asked["inodes"])
    if asked.get("word"):
        answer["holding"] = [
            path for folder in asked["folders"] for path in holding(folder, asked["word"])
        ]
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
