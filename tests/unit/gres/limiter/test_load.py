"""Root's file `load`, as the shim reads it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHIM = HERE.parents[3] / "gres" / "shim"
SLICE = "version=1\ncompute=limiter\n" + "".join(
    f"gpu=GPU-{name}\nmemory=0\nsm=25\n" for name in "ab"
)
BLOCKS = "gpu=GPU-a\nbusy=231\nmemory=2048\ncharge=520\npercent=40\nnew=1\ngpu=GPU-b\nmemory=7\n"
BLOCKS += "charge=1000\npercent=25\n"
NONE = ["none"] * 4
TOLD = ["none", "231,2048,520,40", "-1,7,1000,25", "none"]
"""Of devices -1, 0, 1 and 2: the first and the last do not exist."""

Ask = Callable[..., list[list[str]]]


def load(age: float = 0, blocks: str = BLOCKS) -> str:
    """The file, measured so many seconds ago."""
    return f"version=1\ntime={time.monotonic_ns() - int(age * 1e9)}\n{blocks}"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("load")
    (directory / "slice").write_text(SLICE)
    program = directory / "client"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f'-DSLIPWAY_DIRECTORY="{directory}"']
    sources = ["load.c", "slice.c", "clock.c", str(HERE / "load_client.c")]
    command = ["gcc", *options, "-I.", "-o", str(program), *sources]
    subprocess.run(command, cwd=SHIM, check=True)
    return program


@pytest.fixture
def ask(program: Path) -> Ask:
    """What a new program is told with this file."""
    file = program.with_name("load")
    file.unlink(missing_ok=True)

    def asked(text: str | None, words: str = "") -> list[list[str]]:
        if text is not None:
            file.write_text(text)
        done = subprocess.run([program], input=words, capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    return asked


def test_each_gpu_is_told_and_a_forked_child_too(ask: Ask) -> None:
    assert ask(load(), "fork\nagain\n") == [TOLD] * 3


@pytest.mark.parametrize("age", [5.5, 3600, -60])
def test_old_figures_are_none(ask: Ask, age: float) -> None:
    assert ask(load(age)) == [NONE]


def test_no_file_is_none(ask: Ask) -> None:
    assert ask(None) == [NONE]


@pytest.mark.parametrize(
    "blocks",
    [
        "gpu=GPU-c\ncharge=1000\npercent=25\n",
        "gpu=GPU-a\ncharge=1001\npercent=25\n",
        "gpu=GPU-a\ncharge=0\npercent=25\n",
        "gpu=GPU-a\ncharge=1000\npercent=101\n",
        "gpu=GPU-a\nbusy=-1\ncharge=1000\npercent=25\n",
        "gpu=GPU-a\nmemory=99999999999999999999\n",
        BLOCKS + "half a line",
        BLOCKS + "x=" + "1" * 20000,
    ],
    ids=["foreign", "charge", "no charge", "percent", "busy", "memory", "half a line", "too long"],
)
def test_a_broken_block_is_none(ask: Ask, blocks: str) -> None:
    assert ask(load(blocks=blocks)) == [NONE]


def test_an_empty_file_and_another_version_are_none(ask: Ask) -> None:
    assert ask("") == [NONE]
    assert ask(load().replace("version=1", "version=2")) == [NONE]


def test_the_file_is_read_again_after_half_a_second(program: Path, ask: Ask) -> None:
    assert ask(load()) == [TOLD]
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin
        assert running.stdout

        def told() -> list[str]:
            assert running.stdin
            assert running.stdout
            running.stdin.write("\n")
            running.stdin.flush()
            return running.stdout.readline().split()

        assert running.stdout.readline().split() == TOLD
        program.with_name("load").write_text(load(blocks=BLOCKS.replace("520", "333")))
        time.sleep(0.6)
        assert told()[1] == "231,2048,333,40"
