"""What every Python of a session reads at its start, with a stand-in for jupyter_client."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDER = ROOT / "images" / "toolkit" / "python"
CLIENT = """
class KernelManager:
    def __init__(self, connection_file="", transport="tcp"):
        self.connection_file, self.transport, self.ip = connection_file, transport, "127.0.0.1"
    def write_connection_file(self, **options):
        return self.transport, self.ip, self.connection_file
class AsyncKernelManager(KernelManager):
    pass
"""
PATHS = "import os\ndef jupyter_runtime_dir():\n    return os.environ['JUPYTER_RUNTIME_DIR']\n"
ASKS = """
from jupyter_client.manager import AsyncKernelManager
manager = AsyncKernelManager({given})
print(manager.transport, *manager.write_connection_file(), sep="\\n")
"""


@pytest.fixture
def image() -> Iterator[Path]:
    """A folder of modules as an image has them; its path leaves room for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        yield Path(folder)


def fill(tmp_path: Path) -> None:
    """Write the modules."""
    for name, file, text in (
        ("jupyter_client", "manager.py", CLIENT),
        ("jupyter_core", "paths.py", PATHS),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / file).write_text(text)


def run(image: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Python as in a session's terminal."""
    path = f"{FOLDER}:{image}"
    environ = {
        "PYTHONPATH": path,
        "JUPYTER_RUNTIME_DIR": f"{image}/run",
        "PATH": os.environ["PATH"],
    }
    return subprocess.run(
        [sys.executable, *argv], env=environ | more, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("given", ["", "transport='tcp'", "'kernel-7.json'"])
def test_kernels_of_any_program_get_unix_sockets_in_a_private_folder(
    image: Path, given: str
) -> None:
    """nbconvert, papermill and jupyter console asked for TCP, which the kernel's guard refuses."""
    told = run(image, "-c", ASKS.format(given=given)).stdout.split("\n")
    assert told[:2] == ["ipc", "ipc"]
    address, file = told[2:4]
    assert file.startswith(f"{image}/run/kernel-") and file.endswith(".json")
    assert address == file.removesuffix(".json") + "-ipc"
    assert (image / "run").stat().st_mode & 0o777 == 0o700


def test_a_path_that_is_too_long_for_sockets_is_not_used(image: Path) -> None:
    long = f"{image}/{'long' * 20}"
    told = run(image, "-c", ASKS.format(given=""), JUPYTER_RUNTIME_DIR=long).stdout.split("\n")
    assert len(told[2]) < 100 and long not in told[2]
    assert Path(told[3]).parent.stat().st_mode & 0o777 == 0o700
    Path(told[3]).parent.rmdir()


def test_the_images_own_file_of_this_name_is_run_as_well(image: Path) -> None:
    (image / "sitecustomize.py").write_text("print('of the image', __name__)\n")
    told = run(image, "-c", "import sitecustomize; print(sitecustomize.__file__)").stdout
    assert told == f"of the image sitecustomize\n{image}/sitecustomize.py\n"


def test_a_python_without_jupyter_is_as_before(image: Path) -> None:
    assert run(image, "-c", "print(1)").stdout == "1\n"
    loaded = run(image, "-c", "import sys; print('jupyter_client' in sys.modules)").stdout
    assert loaded == "False\n"


@pytest.mark.parametrize(
    ("packages", "words", "said"),
    [
        ("session", ["install", "x"], True),
        ("session", ["list"], False),
        ("kept", ["install", "x"], False),
    ],
)
def test_pip_says_that_packages_end_with_the_session(
    image: Path, packages: str, words: list[str], said: bool
) -> None:
    (image / "pip").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (image / "pip" / name).touch()
    told = run(image, "-m", "pip", *words, SLIPWAY_PACKAGES=packages).stderr
    assert ("these packages end with this session" in told) == said
    program = image / "pip3"
    program.touch()
    told = run(image, str(program), *words, SLIPWAY_PACKAGES=packages).stderr
    assert ("these packages end with this session" in told) == said
