"""`slipway sbatch`: sbatch, with scripts that run in images."""

from __future__ import annotations

import os
import sys

from portal.node.batch import real
from portal.node.batch.options import CommandLine, OptionError, parse
from portal.node.batch.submit import directives, script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from portal.node.batch.request import Request
    from portal.node.batch.submit.prepared import Prepared
    from portal.node.batch.submit.script import Script

BAD_OPTION = 255
"""sbatch's exit code for a wrong option."""


def main(words: list[str]) -> NoReturn:
    """Become sbatch, or submit a script that runs in an image."""
    try:
        line = parse("sbatch", words)
        if not _asks_information(line):
            batch_file = script.read(line, os.environ)
            directive_options = (
                directives.read(batch_file.content or b"")
                if _has_directives(line, batch_file)
                else []
            )
            if directive_options or line.slipway_options:
                _submit(line, batch_file, [*directive_options, *line.slipway_options])
            batch_file.put_back()
    except OptionError as error:
        real.fail("sbatch", str(error), _error_code())
    except OSError as error:
        real.fail("sbatch", f"{error.strerror or error}: {error.filename or ''}", _error_code())
    real.execute("sbatch", words, os.environ)


def _asks_information(line: CommandLine) -> bool:
    """Whether sbatch only prints something: then waiting for a script could block for ever."""
    return (
        not line.slipway_options and not line.command and not _INFORMATION.isdisjoint(line.options)
    )


_INFORMATION = frozenset({"--help", "--usage", "--version", "-h", "-V"})


def _has_directives(line: CommandLine, batch_file: Script) -> bool:
    # As with sbatch's own, there are none in --wrap.
    return line.wrap is None and directives.has_directives(batch_file.content or b"")


def _error_code() -> int:
    code = os.environ.get("SLURM_EXIT_ERROR", "")
    return int(code) if code.isdigit() else BAD_OPTION


def _refuse(line: CommandLine) -> NoReturn:
    """Let sbatch report the script's error; without the image nothing may be submitted."""
    from portal.node.batch import child  # noqa: PLC0415

    code = child.run("sbatch", ["--test-only", *line.options, *line.command], dict(os.environ))
    if code == 0 and _INFORMATION.isdisjoint(line.options):
        real.fail("sbatch", "--image: the script cannot be read as sbatch reads it", _error_code())
    child.end(code)


def _submit(line: CommandLine, batch_file: Script, options: list[tuple[str, str]]) -> None:
    """Submit for an image, and exit."""
    from portal.node.batch.submit import prepared  # noqa: PLC0415 - not needed without an image

    if batch_file.content is None or not (line.wrap is not None or _complete(batch_file.content)):
        batch_file.put_back()
        _refuse(line)
    submission = prepared.prepare(options, line)
    words = [*submission.options, *line.options]
    if line.wrap is not None:
        words[len(submission.options) + line.wrap] = _wrapped(line, submission.request)
    if submission.dry_run:
        _show(words, line, batch_file, submission.request)
    if line.wrap is not None:
        _hand_over([*words, *line.command], submission)
    from portal.node.batch.submit.wrapped import batch_script  # noqa: PLC0415

    text = batch_script(batch_file.content, submission.request)
    if not line.command:
        os.dup2(script.in_memory(text), 0)
        _hand_over(words, submission)
    _submit_file(words, line, batch_file, text, submission)


def _hand_over(words: list[str], submission: Prepared) -> NoReturn:
    """Become sbatch, or run it if its error may need a note."""
    if not submission.shares_gpu:
        real.execute("sbatch", words, submission.environment)
    from portal.node.batch import child  # noqa: PLC0415
    from portal.node.batch.submit import early  # noqa: PLC0415

    child.end(early.run("sbatch", words, submission.environment))


def _complete(content: bytes) -> bool:
    from portal.node.batch.submit.wrapped import is_complete  # noqa: PLC0415

    return is_complete(content)


def _wrapped(line: CommandLine, request: Request) -> str:
    from portal.node.batch.submit.wrapped import wrap_text  # noqa: PLC0415

    command = line.values["wrap"]
    text = wrap_text(os.fsencode(command), request)
    separate = line.options[line.wrap or 0] == command
    return ("" if separate else "--wrap=") + os.fsdecode(text)


def _submit_file(
    words: list[str], line: CommandLine, batch_file: Script, text: bytes, submission: Prepared
) -> NoReturn:
    """Run sbatch on a file of the same name, from which it takes the job's name."""
    from portal.node.batch import child  # noqa: PLC0415
    from portal.node.batch.private import private_folder  # noqa: PLC0415
    from portal.node.batch.submit import early  # noqa: PLC0415

    run = early.run if submission.shares_gpu else child.run
    with private_folder() as folder:
        path = os.path.join(folder, batch_file.name)
        with open(path, "xb") as stream:
            stream.write(text)
        code = run("sbatch", [*words, path, *line.command[1:]], submission.environment)
    child.end(code)


def _show(words: list[str], line: CommandLine, batch_file: Script, request: Request) -> NoReturn:
    """Print the command and the script instead of submitting them."""
    from shlex import quote  # noqa: PLC0415

    from portal.node.batch.submit.wrapped import batch_script  # noqa: PLC0415

    command = ["sbatch", *words, *line.command]
    # Bytes, and comments only: names may contain any bytes, and the script follows.
    shown = os.fsencode("# " + " ".join(map(quote, command)).replace("\n", "\n# ") + "\n")
    if line.wrap is None:
        shown += batch_script(batch_file.content or b"", request)
    sys.stdout.buffer.write(shown)
    sys.stdout.flush()
    sys.exit(0)
