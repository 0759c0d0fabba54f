"""`slipway srun` and `slipway salloc`: steps and allocations whose programs run in an image."""

from __future__ import annotations

import os

from portal.node.batch import handover, real
from portal.node.batch.options import OptionError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

BAD_OPTION = 1
"""srun's and salloc's exit code for a wrong option."""


def srun(words: list[str]) -> NoReturn:
    """Become srun; in an allocation of `slipway salloc --image`, its image is the default."""
    try:
        line = parse("srun", words)
        if not line.slipway_options and handover.REQUEST not in os.environ:
            real.execute("srun", words, os.environ)
        from portal.node.batch.execute import programs  # noqa: PLC0415
        from portal.node.batch.execute.steps import in_image  # noqa: PLC0415
        from portal.node.batch.submit.prepared import prepare  # noqa: PLC0415 - not needed without an image

        environment = dict(os.environ)
        if line.slipway_options:
            submission = prepare(line.slipway_options, line)
            text, environment = submission.request.text(), submission.environment
            words = [*submission.options, *line.options, *line.command]
        else:
            text = handover.request_text(os.environ)
        words, copies = programs.prepare(words, os.getcwd(), environment)
        programs.send(copies, environment)
        words = in_image(words, text)
    except (OptionError, ValueError) as error:
        real.fail("srun", str(error), BAD_OPTION)
    folder = handover.step_folder(line.chdir, environment, os.getcwd())
    environment = handover.step_environment(
        environment, os.environ, text, folder, names_step="job-name" in line.values
    )
    for name in programs.VARIABLES:
        environment.pop(name, None)
    real.execute("srun", words, environment)


def salloc(words: list[str]) -> NoReturn:
    """Become salloc, with the image in the environment for `slipway srun`."""
    try:
        line = parse("salloc", words)
        if not line.slipway_options:
            real.execute("salloc", words, os.environ)
        from portal.node.batch.submit.prepared import prepare  # noqa: PLC0415

        submission = prepare(line.slipway_options, line)
    except OptionError as error:
        real.fail("salloc", str(error), BAD_OPTION)
    environment = {
        **submission.environment,
        handover.REQUEST: handover.plain(submission.request.text()),
    }
    real.execute("salloc", [*submission.options, *line.options, *line.command], environment)
