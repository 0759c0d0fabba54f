"""Slipway's directives in a batch script: lines such as `#SLIPWAY --image=python/3.13`.

They are read where sbatch reads its own: up to the first line that is neither empty nor a comment.
To sbatch they are comments, so the same script works without Slipway.
"""

from __future__ import annotations

PREFIX = b"#SLIPWAY"


def header_size(script: bytes) -> int:
    """Return the size of the lines that sbatch searches for directives."""
    size = 0
    for line in script.split(b"\n"):  # `splitlines` also divides at a carriage return
        text = line.strip()
        if text and not text.startswith(b"#"):
            break
        size += len(line) + 1
    return min(size, len(script))


def has_directives(script: bytes) -> bool:
    """Whether a script has Slipway's directives; fast, since it is called at every submission."""
    if PREFIX not in script:
        return False
    return any(map(_is_directive, script[: header_size(script)].split(b"\n")))


def read(script: bytes) -> list[tuple[str, str]]:
    """Return Slipway's options in a script, with their values; raises OptionError."""
    from portal.node.batch.options import OptionError, parse  # noqa: PLC0415 - most scripts have none

    options: list[tuple[str, str]] = []
    lines = script[: header_size(script)].split(b"\n")
    for number, line in enumerate(lines, 1):
        if not _is_directive(line):
            continue
        where = f"line {number} of the script"
        try:
            parsed = parse("sbatch", _words(line[len(PREFIX) :]))
        except (OptionError, ValueError) as error:
            raise OptionError(f"{where}: {error}") from None
        unknown = [*parsed.options, *parsed.command]
        if unknown:
            raise OptionError(
                f"{where}: {unknown[0]!r} is not an option of Slipway; "
                "those of Slurm belong in #SBATCH lines"
            )
        options += parsed.slipway_options
    return options


def _is_directive(line: bytes) -> bool:
    arguments = line[len(PREFIX) :]
    return line.startswith(PREFIX) and (not arguments or arguments[:1].isspace())


def _words(text: bytes) -> list[str]:
    import shlex  # noqa: PLC0415

    return shlex.split(text.decode("utf-8", "surrogateescape"), comments=True)
