"""Encrypts and decrypts a stream with a passphrase, by GnuPG: OpenPGP with AES-256.

`gpg --decrypt FILE` reads an encrypted backup without the portal.
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from portal.adapters.backup.manifest import BadBackup

# With a given count gpg does not start an agent to measure one; this is the highest.
_SYMMETRIC = (
    *("--symmetric", "--cipher-algo", "AES256", "--compress-algo", "none"),
    *("--s2k-mode", "3", "--s2k-digest-algo", "SHA512", "--s2k-count", "65011712"),
)
_SESSION_KEY_PACKETS = (b"\x8c", b"\xc3")
"""First bytes of a message that is encrypted with a passphrase (RFC 4880, 5.3: tag 3)."""


class GpgFailed(Exception):
    """GnuPG is missing, or has failed to encrypt; the text says which."""


class NotDecrypted(Exception):
    """The passphrase is wrong, or the file is damaged."""


def is_encrypted(head: bytes) -> bool:
    """Whether a file that begins so is an OpenPGP message with a passphrase."""
    return head[:1] in _SESSION_KEY_PACKETS


@contextmanager
def encrypting(target: IO[bytes], passphrase: str) -> Iterator[IO[bytes]]:
    """A stream that is encrypted into the file `target`; raises GpgFailed."""
    with (
        tempfile.TemporaryFile() as messages,
        _started(_SYMMETRIC, passphrase, subprocess.PIPE, target, messages) as process,
    ):
        assert process.stdin is not None  # noqa: S101  # it is a pipe
        try:
            yield process.stdin
            process.stdin.close()
            complete = process.wait() == 0
        except BrokenPipeError:
            complete = False
        if not complete:
            process.wait()
            messages.seek(0)
            reason = messages.readline().decode(errors="replace").strip()
            raise GpgFailed(f"the backup cannot be encrypted: {reason}")


@contextmanager
def decrypting(file: Path, passphrase: str) -> Iterator[io.RawIOBase]:
    """The decrypted content of a file; raises GpgFailed without gpg.

    Reading raises NotDecrypted, at the latest at the end: only then all of it is authenticated.
    """
    with (
        open(file, "rb") as source,
        _started(["--decrypt"], passphrase, source, subprocess.PIPE, subprocess.DEVNULL) as process,
    ):
        yield _Decrypted(process, os.fstat(source.fileno()).st_size)


class _Decrypted(io.RawIOBase):
    """The output of gpg; raises BadBackup if it is larger than the file, which gpg decompressed."""

    def __init__(self, process: subprocess.Popen[bytes], size: int) -> None:
        self._process = process
        self._left = size

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes."""
        assert isinstance(self._process.stdout, io.BufferedReader)  # noqa: S101  # it is a pipe
        count = self._process.stdout.readinto1(buffer)
        self._left -= count
        if self._left < 0:
            raise BadBackup("it is larger than its file")
        if count == 0 and len(buffer) > 0 and self._process.wait() != 0:
            raise NotDecrypted
        return count


@contextmanager
def _started(
    words: Sequence[str], passphrase: str, stdin: Any, stdout: Any, stderr: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of gpg, which is killed at the end if it still runs."""
    reading, writing = os.pipe()
    with (
        open(reading, "rb") as key,
        open(writing, "wb") as secret,
        tempfile.TemporaryDirectory(prefix="slipway-gpg-") as home,
    ):
        # In a folder without settings, keys or an agent.
        options = ["--homedir", home, "--no-options", "--no-autostart", "--batch", "--no-tty"]
        options += ["--quiet", "--pinentry-mode", "loopback", "--passphrase-fd", str(key.fileno())]
        try:
            process = subprocess.Popen(
                ["gpg", *options, *words],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[key.fileno()],
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise GpgFailed(
                "gpg, which encrypts backups, is not installed: apt install gpg "
                "(dnf install gnupg2)"
            ) from None
        try:
            key.close()
            with suppress(BrokenPipeError):  # the process has ended already, and its status says so
                secret.write(f"{passphrase}\n".encode())
                secret.close()
            yield process
        finally:
            process.kill()
            process.wait()
            for pipe in (secret, process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()
