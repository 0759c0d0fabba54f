"""A command as a script that a POSIX shell reads from its standard input.

The login shell never parses the command: csh ends a quoted word at a newline and expands "!" inside
quotes, and fish, rc, elvish and xonsh quote differently.
"""

from __future__ import annotations

from collections.abc import Sequence

from portal.node.common.slurm_variables import ANY, COMMANDS, OF_THE_SITE

LINE = "exec /bin/sh"
"""The only line that the login shell parses."""


def probe(mark: str) -> bytes:
    """Lines that make the shell print the mark, which they do not contain in one piece.

    They may be sent repeatedly: a start-up file may have read them, in part or completely. It may
    even have become another shell: only a POSIX shell, which keeps variables, prints the mark.
    """
    first_half, second_half = mark[: len(mark) // 2], mark[len(mark) // 2 :]
    return (
        f"\nslipway_rest={second_half}\nprintf '%s%s\\n' {first_half} ${{slipway_rest-}}\n".encode()
    )


def command_script(argv: Sequence[str], stdin: bytes, mark: str) -> bytes:
    """A script that prints a mark to each output, and then becomes the command.

    Both outputs may be the same stream, so standard output's mark comes last. The script contains
    the command's standard input. The shell executes nothing before it has read the whole script: a
    partial script is a syntax error.
    """
    words = b" ".join(_quoted(word) for word in argv)
    steps = (
        _CLEAN_ENVIRONMENT.encode(),
        b"set -- " + words,
        f"printf '%s\\n' {error_mark(mark)} >&2".encode(),
        f"printf '%s\\n' {mark}".encode(),
        b'%s | exec "$@"' % _printing(stdin) if stdin else b'exec "$@" < /dev/null',
    )
    return b"{\n%s\n}\n" % b"\n".join(steps)


def error_mark(mark: str) -> str:
    """The line of standard error after which the command begins."""
    return f"{mark}-"


def _clean_environment() -> str:
    """Unset variables and functions that would change the commands' meaning.

    CDPATH makes `cd` enter other folders. If /bin/sh is bash, it imports functions and options
    such as noclobber (SHELLOPTS) from the environment. The loop's variable has a prefix that no
    environment uses.
    """
    patterns = " | ".join(f"{prefix}*=*" for prefix in (*COMMANDS, ANY))
    keep = " | ".join(f"{name}=*" for name in OF_THE_SITE)
    return f"""\
set +Ceuvx
case ${{BASH_VERSION-}} in ?*) unset -f $(compgen -A function) ;; esac
case :${{PATH-}}: in *:/usr/bin:*) ;; *) PATH=${{PATH:+$PATH:}}/usr/local/bin:/usr/bin:/bin ;; esac
set -f
for slipway_word in $(export -p); do
    case $slipway_word in
        {keep}) continue ;;
        {patterns}) slipway_word=${{slipway_word%%=*}} ;;
        *) continue ;;
    esac
    case $slipway_word in *[!A-Za-z0-9_]*) ;; *) unset "$slipway_word" ;; esac
done
set +f
unset slipway_word CDPATH"""


_CLEAN_ENVIRONMENT = _clean_environment()


def _quoted(word: str) -> bytes:
    """Quote a word for the shell; bytes that are not UTF-8 are surrogates in the word."""
    raw = word.encode("utf-8", "surrogateescape")
    return b"'" + raw.replace(b"'", b"'\\''") + b"'"


_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\%") | {0x0A}
_PRINTED = [bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in range(256)]
_PRINTED[ord("%")] = b"%%"


_PIECE = 16 * 1024
"""Bytes per printf, which is an external program in some shells: arguments are limited."""


def _printing(data: bytes) -> bytes:
    """Commands that print these bytes, written in ASCII so that no locale changes their meaning."""
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)]
    lines = [b"printf '%s'" % b"".join(_PRINTED[byte] for byte in piece) for piece in pieces]
    # The command need not read all of its input: EPIPE is not an error.
    return b"{ %s; } 2>/dev/null" % b"; ".join(lines)
