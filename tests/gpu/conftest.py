"""Fixtures of the tests on a real GPU. Without a GPU they fail, since they would verify nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpu.session import PYTHON, WORK, Gpu, Session

CAP = 0.25
"""The slice of these tests, of a whole GPU: 0.5 fGPU where 1 fGPU is half a GPU."""


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    try:
        return Gpu.find()
    except FileNotFoundError as error:
        pytest.exit(f"tests/gpu needs an NVIDIA GPU: {error}", returncode=1)


@pytest.fixture(scope="session")
def cap(gpu: Gpu) -> int:
    """Bytes of the slice."""
    mib = 1 << 20
    return int(gpu.memory * CAP) // mib * mib


@pytest.fixture(scope="session")
def sessions(gpu: Gpu) -> tuple[Session, Session]:
    return Session("one", gpu), Session("two", gpu)


@pytest.fixture
def session(sessions: tuple[Session, Session], cap: int) -> Session:
    """A new session with the slice's memory and all multiprocessors."""
    return sessions[0].grant(cap, 100)


@pytest.fixture
def neighbour(sessions: tuple[Session, Session], cap: int) -> Session:
    return sessions[1].grant(cap, 100)


@pytest.fixture(scope="session")
def need() -> Callable[[str], None]:
    """Skips, with a reason, if a framework is not installed. Nothing else is ever skipped."""

    def check(framework: str) -> None:
        code = (
            f"import importlib.util, sys; sys.exit(importlib.util.find_spec({framework!r}) is None)"
        )
        if subprocess.run([PYTHON, "-c", code], check=False).returncode:
            pytest.skip(f"{framework} is not installed for {PYTHON}")

    return check


@pytest.fixture(scope="session")
def figures() -> Iterator[dict[str, str]]:
    """Measured figures by name; bench/gpu.py adds them to its table."""
    seen: dict[str, str] = {}
    yield seen
    WORK.mkdir(parents=True, exist_ok=True)
    Path(WORK / "figures.json").write_text(json.dumps(seen))
