"""A command as a script for a POSIX shell that reads it from its standard input.

No login shell sees the command: csh ends a quoted word at a newline and expands "!" inside quotes,
and fish, rc, elvish and xonsh have quotes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from portal.node.common.slurm_variables import ANY, COMMANDS, OF_THE_SITE

LINE = "exec /bin/sh"
"""All that a login shell reads."""


def knock(mark: str) -> bytes:
    """Lines that make the shell print the mark, which is not in their own text.

    They may be sent again: a start-up file may have read them, in part or as a whole. It may even
    have become another shell: only a POSIX shell, which keeps variables, prints the mark.
    """
    half, rest = mark[: len(mark) // 2], mark[len(mark) // 2 :]
    return f"\nslipway_rest={rest}\nprintf '%s%s\\n' {half} ${{slipway_rest-}}\n".encode()


def command_script(argv: Sequence[str], stdin: bytes, mark: str) -> bytes:
    """A script that prints a mark to each output, and then becomes the command.

    Both outputs may lead to the same place, so standard output's mark comes last. The command's
    standard input is in the script, too. The shell executes nothing before it has read all of the
    script: what arrives in part is a syntax error.
    """
    words = b" ".join(_quoted(word) for word in argv)
    steps = (
        _FORGET.encode(),
        b"set -- " + words,
        f"printf '%s\\n' {error_mark(mark)} >&2".encode(),
        f"printf '%s\\n' {mark}".encode(),
        b'%s | exec "$@"' % _printing(stdin) if stdin else b'exec "$@" < /dev/null',
    )
    return b"{\n%s\n}\n" % b"\n".join(steps)


def error_mark(mark: str) -> str:
    """The line of standard error after which the command begins."""
    return f"{mark}-"


def _forget_environment() -> str:
    """Unset what would change the meaning of our commands, whatever start-up files export.

    CDPATH leads `cd` to other folders. Where /bin/sh is bash, it takes functions and options such
    as noclobber (SHELLOPTS) from the environment. The loop's variable has a name that nobody
    exports.
    """
    begins = " | ".join(f"{prefix}*=*" for prefix in (*COMMANDS, ANY))
    keep = " | ".join(f"{name}=*" for name in OF_THE_SITE)
    return f"""\
set +Ceuvx
case ${{BASH_VERSION-}} in ?*) unset -f $(compgen -A function) ;; esac
case :${{PATH-}}: in *:/usr/bin:*) ;; *) PATH=${{PATH:+$PATH:}}/usr/local/bin:/usr/bin:/bin ;; esac
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


_FORGET = _forget_environment()


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
