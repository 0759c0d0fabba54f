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
            found = script.read(line, os.environ)
            given = directives.read(found.content or b"") if _has_directives(line, found) else []
            if given or line.own:
                _submit(line, found, [*given, *line.own])
            found.put_back()
    except OptionError as error:
        real.fail("sbatch", str(error), _error_code())
    except OSError as error:
        real.fail("sbatch", f"{error.strerror or error}: {error.filename or ''}", _error_code())
    real.execute("sbatch", words, os.environ)


def _asks_information(line: CommandLine) -> bool:
    """Whether sbatch only prints something: it reads no script, which might be awaited for ever."""
    return not line.own and not line.command and not _INFORMATION.isdisjoint(line.options)


_INFORMATION = frozenset({"--help", "--usage", "--version", "-h", "-V"})


def _has_directives(line: CommandLine, found: Script) -> bool:
    # As with sbatch's own, there are none in --wrap.
    return line.wrap is None and directives.has_directives(found.content or b"")


def _error_code() -> int:
    code = os.environ.get("SLURM_EXIT_ERROR", "")
    return int(code) if code.isdigit() else BAD_OPTION


def _refuse(line: CommandLine) -> NoReturn:
    """Let sbatch say what is wrong with the script; without the image nothing may be submitted."""
    from portal.node.batch import child  # noqa: PLC0415

    code = child.run("sbatch", ["--test-only", *line.options, *line.command], dict(os.environ))
    if code == 0 and _INFORMATION.isdisjoint(line.options):
        real.fail("sbatch", "--image: the script cannot be read as sbatch reads it", _error_code())
    child.end(code)


def _submit(line: CommandLine, found: Script, options: list[tuple[str, str]]) -> None:
    """Submit for an image, and exit."""
    from portal.node.batch.submit import prepared  # noqa: PLC0415 - not needed without an image

    if found.content is None or not (line.wrap is not None or _complete(found.content)):
        found.put_back()
        _refuse(line)
    asked = prepared.prepare(options, line)
    words = [*asked.options, *line.options]
    if line.wrap is not None:
        words[len(asked.options) + line.wrap] = _wrapped(line, asked.request)
    if asked.dry_run:
        _show(words, line, found, asked.request)
    if line.wrap is not None:
        _hand_over([*words, *line.command], asked)
    from portal.node.batch.submit.wrapped import batch_script  # noqa: PLC0415

    text = batch_script(found.content, asked.request)
    if not line.command:
        os.dup2(script.in_memory(text), 0)
        _hand_over(words, asked)
    _submit_file(words, line, found, text, asked)


def _hand_over(words: list[str], asked: Prepared) -> NoReturn:
    """Become sbatch, or run it where more may be said."""
    if not asked.shares_gpu:
        real.execute("sbatch", words, asked.environment)
    from portal.node.batch import child  # noqa: PLC0415
    from portal.node.batch.submit import early  # noqa: PLC0415

    child.end(early.run("sbatch", words, asked.environment))


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
    words: list[str], line: CommandLine, found: Script, text: bytes, asked: Prepared
) -> NoReturn:
    """Run sbatch on a file of the same name, from which it takes the job's name."""
    from portal.node.batch import child  # noqa: PLC0415
    from portal.node.batch.private import private_folder  # noqa: PLC0415
    from portal.node.batch.submit import early  # noqa: PLC0415

    run = early.run if asked.shares_gpu else child.run
    with private_folder() as folder:
        path = os.path.join(folder, found.name)
        with open(path, "xb") as stream:
            stream.write(text)
        code = run("sbatch", [*words, path, *line.command[1:]], asked.environment)
    child.end(code)


def _show(words: list[str], line: CommandLine, found: Script, request: Request) -> NoReturn:
    """Print what would be submitted."""
    from shlex import quote  # noqa: PLC0415

    from portal.node.batch.submit.wrapped import batch_script  # noqa: PLC0415

    command = ["sbatch", *words, *line.command]
    # Bytes, and comments alone: any name may be in it, and the rest is the script.
    shown = os.fsencode("# " + " ".join(map(quote, command)).replace("\n", "\n# ") + "\n")
    if line.wrap is None:
        shown += batch_script(found.content or b"", request)
    sys.stdout.buffer.write(shown)
    sys.stdout.flush()
    sys.exit(0)
