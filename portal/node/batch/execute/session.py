"""Run a session in its owner's own image: find it, check it, and start the given container.

`slipway node-session OPTIONS -- COMMAND…`, with the session's instructions on standard input. In
the command the word @image stands for the image.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from portal.node.batch.image import ImageError, site
from portal.node.batch.image.files import open_file
from portal.node.batch.image.pull import Limits, image_of
from portal.node.batch.image.registry import Login
from portal.node.batch.image.site import SiteFile
from portal.node.batch.image.tell import Teller
from portal.node.common.reference import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

FAILED = 70
"""Exit code if the session cannot start, as of the batch script."""
IMAGE_WORD = "@image"
LOGIN, REFUSED = "registry", "refused_images"
"""The fields of the instructions that never get into the container."""
_OPTIONS = ("--file", "--folder", "--reference", "--max-mb", "--cache", "--cache-mb", "--insecure",
            "--start-seconds")  # fmt: skip
PAUSE = 0.2


def main(words: list[str]) -> NoReturn:
    """Run the session, and end as it does."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        options, command = read_words(words)
        spec, login, refused = read_spec()
        tell = Teller(spec)
        image, lock = _image(options, login, refused, command[0], tell)
        tell.start()
        code = run(command, image, spec, float(options["--start-seconds"]))
        os.close(lock)
    except (ImageError, ValueError, OSError) as error:
        print(f"Slipway: {error}", file=sys.stderr, flush=True)
        sys.exit(FAILED)
    sys.exit(code if code >= 0 else 128 - code)


def _stop(number: int, _frame: FrameType | None) -> None:
    # An exception, so that the files of an interrupted pull are deleted.
    sys.exit(128 + number)


def read_words(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options by name, and the command; raises ValueError."""
    end = words.index("--")
    names, values = words[:end:2], words[1:end:2]
    if len(names) != len(values) or not set(names) <= set(_OPTIONS) or not words[end + 1 :]:
        raise ValueError("the portal and this node have different versions of Slipway")
    return dict(zip(names, values)), words[end + 1 :]


def read_spec() -> tuple[dict[str, Any], Login | None, list[SiteFile]]:
    """Read the session's instructions, and remove from them the login for the image's registry and
    the site's files that the image must not be, which are returned separately.
    """
    with open(os.dup(0), encoding="utf-8") as stream:
        spec = json.loads(stream.read())
    credentials = spec.pop(LOGIN, None)
    login = Login(credentials["user"], credentials["password"]) if credentials else None
    return spec, login, [SiteFile(*file) for file in spec.pop(REFUSED, [])]


def _image(
    options: dict[str, str],
    login: Login | None,
    refused: list[SiteFile],
    apptainer: str,
    tell: Teller,
) -> tuple[int, int]:
    """Return descriptors of the image and of its lock; raises ImageError."""
    most = int(options["--max-mb"])
    if "--file" in options:
        image = open_file(options["--folder"], options["--file"], most, refused)
        return image, os.dup(image)
    insecure = [host for host in options.get("--insecure", "").split(",") if host]
    limits = Limits(os.path.abspath(options["--cache"]), most, int(options["--cache-mb"]), insecure)
    image, lock = image_of(parse(options["--reference"]), login, limits, [apptainer], tell)
    # In the cache, which is the owner's folder, any file may have the pulled one's name.
    site.check(image, options["--reference"], refused)
    return image, lock


def run(command: list[str], image: int, spec: dict[str, Any], start_seconds: float) -> int:
    """Run the container; returns its exit code, or minus its signal. Raises ImageError.

    The image's own files run before the runner does, and may never end: the runner has started as
    soon as it has read its instructions, which moves the position in their file.
    """
    image_path = f"/proc/{os.getpid()}/fd/{image}"
    spec_file = os.memfd_create("spec")
    os.write(spec_file, json.dumps(spec).encode() + b"\n")
    os.lseek(spec_file, 0, os.SEEK_SET)
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    child = subprocess.Popen(
        [image_path if w == IMAGE_WORD else w for w in command], stdin=spec_file
    )
    for missed in early:
        child.send_signal(missed)
    deadline = time.monotonic() + start_seconds
    while child.poll() is None and os.lseek(spec_file, 0, os.SEEK_CUR) == 0:
        if time.monotonic() > deadline:
            child.kill()
            raise ImageError(
                f"the image's own start-up did not end within {start_seconds:.0f} seconds. Look "
                "for a command that waits in its %environment or in /.singularity.d/env"
            )
        time.sleep(PAUSE)
    os.close(spec_file)
    return child.wait()
