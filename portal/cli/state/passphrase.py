"""Input of a backup's passphrase."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

SHORTEST = 12


class NoPassphrase(Exception):
    """The passphrase is missing, too short or not repeated; the text says so."""


def read_passphrase(file: str | None, *, new: bool) -> str:
    """Read the first line of a file, or a terminal, twice if `new`; raises NoPassphrase."""
    if file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise NoPassphrase(f"--passphrase-file {file}: {error}") from None
    elif not sys.stdin.isatty():
        raise NoPassphrase("there is no terminal to type a passphrase: use --passphrase-file FILE")
    else:
        text = getpass.getpass("Passphrase: ")
        if new and getpass.getpass("The same again: ") != text:
            raise NoPassphrase("the two passphrases differ")
    if not text or (new and len(text) < SHORTEST):
        raise NoPassphrase(f"a passphrase has at least {SHORTEST} characters")
    return text
