"""A command as a script for a POSIX shell that reads it from its standard input.

No login shell sees the command: csh ends a quoted word at a newline and expands "!" inside quotes,
and fish, rc, elvish and xonsh have quotes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from portal.core.slurm_variables import ANY, COMMANDS, OF_THE_SITE

LINE = "exec /bin/sh"
"""All that a login shell reads."""


def knock(mark: str) -> bytes:
    """A line that makes the shell print the mark, which is not in the line's own text.

    It may be sent again: a start-up file may have read it, in part or as a whole.
    """
    middle = len(mark) // 2
    return f"\nprintf '%s%s\\n' {mark[:middle]} {mark[middle:]}\n".encode()


def command_script(argv: Sequence[str], stdin: bytes, mark: str) -> bytes:
    """A script that prints the mark to both outputs, and then becomes the command.

    Its standard input is in the script, too. The shell executes nothing before it has read all of
    the script: what arrives in part is a syntax error.
    """
    words = b" ".join(_quoted(word) for word in argv)
    steps = (
        _FORGET.encode(),
        b"set -- " + words,
        f"printf '%s\\n' {mark}".encode(),
        f"printf '%s\\n' {mark} >&2".encode(),
        b'%s | exec "$@"' % _printing(stdin) if stdin else b'exec "$@" < /dev/null',
    )
    return b"{\n%s\n}\n" % b"\n".join(steps)


def _forget_variables() -> str:
    """Unset what would change the meaning of our commands, whatever start-up files export.

    CDPATH leads `cd` to other folders. The variable of the loop has a name that nobody exports.
    """
    begins = " | ".join(f"{prefix}*=*" for prefix in (*COMMANDS, ANY))
    keep = " | ".join(f"{name}=*" for name in OF_THE_SITE)
    return f"""\
set -f
for slipway_word in $(export -p); do
    case $slipway_word in
        {keep}) continue ;;
        {begins}) slipway_word=${{slipway_word%%=*}} ;;
        *) continue ;;
    esac
    case $slipway_word in *[!A-Za-z0-9_]*) ;; *) unset "$slipway_word" ;; esac
done
set +f
unset slipway_word CDPATH"""


_FORGET = _forget_variables()


def _quoted(word: str) -> bytes:
    """A word in single quotes; bytes that are not UTF-8 are surrogates in it."""
    raw = word.encode("utf-8", "surrogateescape")
    return b"'" + raw.replace(b"'", b"'\\''") + b"'"


_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\%") | {0x0A}
_PRINTED = [bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in range(256)]
_PRINTED[ord("%")] = b"%%"


_PIECE = 16 * 1024
"""Bytes for one printf, which is a program of its own in some shells: words have a limit."""


def _printing(data: bytes) -> bytes:
    """Commands that print these bytes, in ASCII alone: in no locale they have another meaning."""
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    lines = [b"printf '%s'" % b"".join(_PRINTED[byte] for byte in piece) for piece in pieces]
    # The command need not read all of its input; nobody needs to be told.
    return b"{ %s; } 2>/dev/null" % b"; ".join(lines)
