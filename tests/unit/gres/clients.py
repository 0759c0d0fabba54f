"""CUDA programs that a test controls line by line (cuda_client.c)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

OUT_OF_MEMORY = 2


class Client:
    """A process with a context on the GPU, unless `begin` is false."""

    def __init__(
        self,
        program: Path,
        library: Path,
        *before: str,
        begin: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*before, str(program), str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        if begin:
            assert self.ask("begin") == ["0"]

    def send(self, *words: object) -> None:
        """Sends a command; read its response by `answer`, if the process survives it."""
        assert self.process.stdin
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> list[str]:
        """The words of the next line."""
        assert self.process.stdout
        return self.process.stdout.readline().split()

    def ask(self, *words: object) -> list[str]:
        self.send(*words)
        return self.answer()

    def take(self, kind: str, size: int) -> int:
        """CUDA's return code: 0, or the error."""
        return int(self.ask("take", kind, size)[0])

    def give(self, number: int = 0) -> int:
        return int(self.ask("give", number)[0])

    @property
    def unused(self) -> int:
        """Free memory as reported by CUDA."""
        return int(self.ask("unused")[0])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
