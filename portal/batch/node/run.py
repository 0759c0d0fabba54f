"""What runs on compute nodes: the batch script, or one task of a step, in its image."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from portal.batch import handover
from portal.batch.child import FORWARDED, end, forward
from portal.batch.image import ImageError
from portal.batch.node.container import ContainerError, argv
from portal.batch.node.own_image import find_image
from portal.batch.node.steps import StepServer
from portal.batch.private import private_folder
from portal.batch.request import Request, parse
from portal.batch.submit.wrapped import unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HANDED = 9
"""The descriptor with the request and the script."""
FAILED = 70
"""Exit code if the container could not be started (sysexits.h: EX_SOFTWARE)."""
PLACE = "/opt/slipway-job"
"""Where the job's private folder is in the container."""


def batch(words: list[str]) -> NoReturn:
    """Run the batch script in its image: `slipway node-batch SCRIPT [ARGUMENT…]`."""
    for name in (handover.REQUEST, handover.STEP):  # of the program that submitted the job
        os.environ.pop(name, None)
    try:
        with open(HANDED, "rb") as stream:
            text, script = unwrap(stream.read())
        request = parse(text)
        used = find_image(request)
        with private_folder() as folder:
            code = _run_script(request, request.text(), script, words, folder)
        for descriptor in used:
            os.close(descriptor)
    except (ContainerError, ImageError, ValueError, OSError) as error:
        _fail(str(error))
    end(code)


def _run_script(request: Request, text: str, script: bytes, words: list[str], folder: str) -> int:
    """The exit code, or minus the signal that ended the script."""
    source = os.path.join(folder, "script")
    with open(os.open(source, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as stream:
        stream.write(script)
    place = os.path.abspath(words[0])
    command = argv(
        request,
        [place, *words[1:]],
        launcher=["--job", PLACE, "--image", request.name],
        files=[(source, place), (folder, PLACE)],
        environment=os.environ,
    )
    server = StepServer(folder, text)
    server.start()
    try:
        return _supervise(command, os.path.join(folder, "pid"))
    finally:
        server.stop()


def _supervise(command: list[str], pid_file: str) -> int:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(FAILED)

    def send(number: int) -> None:
        # Once it runs, the script itself: Apptainer does not pass signals on.
        os.kill(_started(pid_file) or child, number)

    forward(send, FORWARDED)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _started(pid_file: str) -> int:
    """The script's PID, which the launcher writes; 0 before that."""
    with contextlib.suppress(OSError, ValueError), open(pid_file, encoding="ascii") as stream:
        return int(stream.read())
    return 0


def step(words: list[str]) -> NoReturn:
    """Become one task of a step: `slipway node-step -- PROGRAM [ARGUMENT…]`."""
    try:
        request = parse(handover.request_text(os.environ))
        for descriptor in find_image(request):
            os.set_inheritable(descriptor, True)  # in use as long as the task runs
        command = argv(
            request,
            words[1:] if words[:1] == ["--"] else words,
            launcher=["--image", request.name],
            environment=os.environ,
            shared=os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1",
        )
        os.execvp(command[0], command)
    except (ContainerError, ImageError, ValueError, OSError) as error:
        _fail(str(error))


def _fail(text: str) -> NoReturn:
    print(f"Slipway: {text}", file=sys.stderr, flush=True)
    sys.exit(FAILED)
