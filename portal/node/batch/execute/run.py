"""Commands on compute nodes that run a batch script, or one task of a step, in its image."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from portal.node.batch import handover
from portal.node.batch.child import ALL, end
from portal.node.batch.execute import environment
from portal.node.batch.execute.container import ContainerError, argv
from portal.node.batch.execute.own_image import find_image
from portal.node.batch.execute.process import FAILED
from portal.node.batch.execute.shared import FirstTask, instance_of, is_first, is_shared, name_of
from portal.node.batch.execute.steps import StepServer, write_client
from portal.node.batch.execute.supervisor import Supervisor
from portal.node.batch.image import ImageError
from portal.node.batch.private import private_folder
from portal.node.batch.request import Request, parse
from portal.node.batch.submit.wrapped import unwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

HANDED, ENVIRONMENT = 9, 8
"""The descriptors with the request and the script, and with the environment."""
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU}
"""Signals that end a job while its image is being pulled; all others are for the script."""


def batch(words: list[str], mask: set[int]) -> NoReturn:
    """Run the batch script in its image: `slipway node-batch SCRIPT [ARGUMENT…]`.

    All signals are blocked; `mask`: those that Slurm has blocked.
    """
    try:
        text, script = _handed()
        request = parse(text)
        supervisor = Supervisor(is_batch=True)
        used = _pulled(request)
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(private_folder())
            source = os.path.join(folder, "script")
            with open(os.open(source, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as stream:
                stream.write(script)
            path = os.path.abspath(words[0])
            task = Task(request, request.text(), folder, supervisor)
            code = task.run(
                [path, *words[1:]],
                mask,
                launcher=["--job"],
                files=[(source, path)],
                on_start=lambda _: stack.close(),  # the container has mounted the folder's files
            )
        for descriptor in used:
            os.close(descriptor)
    except (ContainerError, ImageError, ValueError, OSError) as error:
        _fail(str(error))
    end(code)


def _handed() -> tuple[str, bytes]:
    """Read the request and the script, and restore the environment; raises OSError, ValueError."""
    with open(HANDED, "rb") as stream:
        text, script = unwrap(stream.read())
    with contextlib.suppress(OSError), open(ENVIRONMENT, "rb") as stream:
        environment.restore(stream.read())
    for name in (handover.REQUEST, handover.STEP):  # of the program that submitted the job
        os.environ.pop(name, None)
    return text, script


def _pulled(request: Request) -> list[int]:
    """Check or pull the image; returns descriptors that must stay open while it is in use."""
    if "://" not in request.image:
        return find_image(request)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ALL - _ENDING - {signal.SIGCHLD, signal.SIGURG})
    try:
        return find_image(request)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, ALL)


class Task:
    """A batch script or task, in its container."""

    def __init__(self, request: Request, text: str, folder: str, supervisor: Supervisor) -> None:
        self._request = request
        self._text = text
        self._folder = folder
        self._supervisor = supervisor

    def run(
        self,
        program: list[str],
        mask: set[int],
        *,
        launcher: list[str],
        files: list[tuple[str, str]],
        on_start: Callable[[str], None],
        shared: bool = False,
        instance: str = "",
    ) -> int:
        """Run the program; returns its exit code, or minus the signal that ended it.

        `instance`: the name of the container to enter, if it is another task's.
        """
        server = StepServer(self._text, mask)
        command = argv(
            self._request,
            program,
            launcher=[*launcher, "--image", self._request.name],
            files=[*files, *write_client(self._folder, self._request)],
            environment=os.environ,
            shared=shared,
            instance=instance,
        )
        name = self._supervisor.launcher(environment.block(), server.stop)
        names = {environment.SUPERVISOR: name, environment.SLURM: server.name}
        variables = environment.for_apptainer(os.environ, **names)
        try:
            return self._supervisor.run(
                command, variables, mask, on_fork=server.start, on_start=on_start
            )
        finally:
            server.stop()


def step(words: list[str], mask: set[int]) -> NoReturn:
    """Run one task of a step: `slipway node-step -- PROGRAM [ARGUMENT…]`."""
    try:
        text = handover.request_text(os.environ)
        request = parse(text)
        shared = is_shared(os.environ)
        name = name_of(handover.step_token(os.environ)) if shared else ""
        first = FirstTask(name) if shared and is_first(os.environ) else None
        supervisor = Supervisor(is_batch=False)
        used = _pulled(request)
        with contextlib.ExitStack() as stack:
            task = Task(request, text, stack.enter_context(private_folder()), supervisor)

            def on_start(instance: str) -> None:
                if first:
                    first.tell(instance)
                stack.close()

            code = task.run(
                words[1:] if words[:1] == ["--"] else words,
                mask,
                launcher=[],
                files=[],
                on_start=on_start,
                shared=shared,
                instance=instance_of(name) if shared and not first else "",
            )
        for descriptor in used:
            os.close(descriptor)
    except (ContainerError, ImageError, ValueError, OSError) as error:
        _fail(str(error))
    end(code)


def _fail(text: str) -> NoReturn:
    print(f"Slipway: {text}", file=sys.stderr, flush=True)
    sys.exit(FAILED)
