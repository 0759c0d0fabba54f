"""`slipway sbatch`: sbatch, with scripts that run in images."""

from __future__ import annotations

import os
import sys

from portal.batch import real
from portal.batch.options import CommandLine, OptionError, parse
from portal.batch.submit import directives, script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from portal.batch.request import Request
    from portal.batch.submit.script import Script

BAD_OPTION = 255
"""sbatch's exit code for a wrong option."""


def main(words: list[str]) -> NoReturn:
    """Become sbatch, or submit a script that runs in an image."""
    try:
        line = parse("sbatch", words)
        if not _asks_information(line):
            found = script.read(line, os.environ)
            given = directives.read(found.content or b"") if _has_directives(line, found) else []
            if given or line.own:
                _submit(line, found, [*given, *line.own])
            if found.stdin >= 0:
                os.dup2(found.stdin, 0)
    except OptionError as error:
        real.fail("sbatch", str(error), _error_code())
    real.execute("sbatch", words, os.environ)


def _asks_information(line: CommandLine) -> bool:
    """Whether sbatch only prints something: it reads no script, which might be awaited for ever."""
    options = {"--help", "--usage", "--version", "-h", "-V"}
    return not line.own and not line.command and not options.isdisjoint(line.options)


def _has_directives(line: CommandLine, found: Script) -> bool:
    # As with sbatch's own, there are none in --wrap.
    return line.wrap is None and directives.has_directives(found.content or b"")


def _error_code() -> int:
    code = os.environ.get("SLURM_EXIT_ERROR", "")
    return int(code) if code.isdigit() else BAD_OPTION


def _submit(line: CommandLine, found: Script, options: list[tuple[str, str]]) -> None:
    """Submit for an image and exit; returns if sbatch has to refuse the script."""
    from portal.batch.submit import prepared  # noqa: PLC0415 - not needed without an image

    if found.content is None or not (line.wrap is not None or _complete(found.content)):
        if found.stdin >= 0:
            os.dup2(found.stdin, 0)
        real.execute("sbatch", [*line.options, *line.command], os.environ)
    asked = prepared.prepare(options, line)
    words = [*asked.options, *line.options]
    if line.wrap is not None:
        words[len(asked.options) + line.wrap] = _wrapped(line, asked.request)
    if asked.dry_run:
        _show(words, line, found, asked.request)
    if line.wrap is not None:
        real.execute("sbatch", [*words, *line.command], asked.environment)
    from portal.batch.submit.wrapped import batch_script  # noqa: PLC0415

    text = batch_script(found.content, asked.request)
    if not line.command:
        os.dup2(script.in_memory(text), 0)
        real.execute("sbatch", words, asked.environment)
    sys.exit(_submit_file(words, line, found, text, asked.environment))


def _complete(content: bytes) -> bool:
    from portal.batch.submit.wrapped import is_complete  # noqa: PLC0415

    return is_complete(content)


def _wrapped(line: CommandLine, request: Request) -> str:
    from portal.batch.submit.wrapped import wrap_text  # noqa: PLC0415

    command = line.values["wrap"]
    text = wrap_text(command.encode("utf-8", "surrogateescape"), request)
    separate = line.options[line.wrap or 0] == command
    return ("" if separate else "--wrap=") + text.decode("utf-8", "surrogateescape")


def _submit_file(
    words: list[str], line: CommandLine, found: Script, text: bytes, environment: dict[str, str]
) -> int:
    """Run sbatch on a file of the same name, from which it takes the job's name."""
    from portal.batch.child import run  # noqa: PLC0415
    from portal.batch.private import private_folder  # noqa: PLC0415

    with private_folder() as folder:
        path = os.path.join(folder, found.name)
        with open(path, "xb") as stream:
            stream.write(text)
        return run("sbatch", [*words, path, *line.command[1:]], environment)


def _show(words: list[str], line: CommandLine, found: Script, request: Request) -> NoReturn:
    """Print what would be submitted."""
    from shlex import quote  # noqa: PLC0415

    from portal.batch.submit.wrapped import batch_script  # noqa: PLC0415

    command = ["sbatch", *words, *line.command]
    print("#", " ".join(map(quote, command)), flush=True)
    if line.wrap is None:
        sys.stdout.buffer.write(batch_script(found.content or b"", request))
        sys.stdout.flush()
    sys.exit(0)
