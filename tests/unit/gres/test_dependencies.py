"""No cycles among the shim's files, neither of definitions (by `nm`) nor of includes.

`python -m tests.unit.gres.test_dependencies FOLDER` builds the shim into FOLDER and prints the
graph.
"""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from .conftest import ROOT, make

SHIM = ROOT / "gres" / "shim"
COMMON = {"shim.h", "glibc_compat.h", "cuda_abi.h", "cuda_wrap.h", "nvml_abi.h", "nvml_wrap.h"}
LONGEST = 350  # lines

Graph = dict[str, set[str]]


def symbols(folder: Path) -> Graph:
    """Which objects of a folder use functions or data that another one defines."""
    defined: dict[str, str] = {}
    wanted: Graph = {}
    for file in sorted(folder.glob("*.o")):
        listed = subprocess.run(
            ["nm", "--format=posix", "--extern-only", str(file)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        wanted[file.stem] = set()
        for name, kind in (line.split()[:2] for line in listed.splitlines()):
            if kind == "U":
                wanted[file.stem].add(name)
            else:
                assert defined.setdefault(name, file.stem) == file.stem, f"{name} is defined twice"
    return {
        user: {defined[name] for name in names if name in defined} - {user}
        for user, names in wanted.items()
    }


def includes() -> Graph:
    """Which headers and sources of the shim include which headers."""
    pattern = re.compile(r'^#include "(.+)"', re.MULTILINE)
    return {file.name: set(pattern.findall(file.read_text())) for file in SHIM.glob("*.[ch]")}


def modules() -> Graph:
    """The same by module: a source and its header count as one."""
    graph: Graph = {}
    for name, used in includes().items():
        graph.setdefault(Path(name).stem, set()).update(Path(each).stem for each in used)
    return {name: used - {name} for name, used in graph.items()}


def order(graph: Graph) -> list[str]:
    """The names in topological order; raises CycleError."""
    return list(TopologicalSorter(graph).static_order())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shim")
    make("gres/shim", out)
    return out


@pytest.mark.parametrize("library", ["cuda", "nvml"])
def test_definitions_form_no_cycle(built: Path, library: str) -> None:
    graph = symbols(built / library)
    assert any(graph.values())
    order(graph)


def test_includes_form_no_cycle() -> None:
    order(includes())
    order(modules())


def test_a_cycle_would_be_detected() -> None:
    with pytest.raises(CycleError):
        order({"charge": {"pools"}, "pools": {"guard"}, "guard": {"charge"}})


def test_every_source_that_others_use_has_a_header_and_includes_it_first(built: Path) -> None:
    for library in ("cuda", "nvml"):
        for used in set[str]().union(*symbols(built / library).values()):
            source = (SHIM / f"{used}.c").read_text()
            assert re.search(r'^#include "(.+)"', source, re.MULTILINE)[1] == f"{used}.h"  # type: ignore[index]


def test_every_header_belongs_to_one_source_or_is_common() -> None:
    for header in SHIM.glob("*.h"):
        assert header.name in COMMON or header.with_suffix(".c").exists()


def test_every_header_compiles_by_itself() -> None:
    for header in sorted(SHIM.glob("*.h")):
        subprocess.run(
            ["gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", str(header)],
            check=True,
        )


def test_files_are_short() -> None:
    sources = [file for file in SHIM.iterdir() if file.suffix != ".txt"]
    long = [file.name for file in sources if len(file.read_text().splitlines()) > LONGEST]
    assert sources and long == []


def statics(text: str) -> set[str]:
    """The functions and variables that a source keeps to itself."""
    attribute, words = r"(?:__attribute__\(\(\w+\)\) )?", r"[\w ]+?[ *]"
    found = re.findall(rf"^{attribute}static {words}(\w+)\(", text, re.MULTILINE)
    found += re.findall(rf"^static {words}(\w+)(?:\[[^\]]*\])*(?: = |;|$)", text, re.MULTILINE)
    found += re.findall(r"^} (\w+)(?:\[[^\]]*\])*(?: = |;)", text, re.MULTILINE)  # of a struct
    return set(found)


def test_static_names_are_different_in_all_files() -> None:
    """So that a name in a backtrace, or a breakpoint, tells the file."""
    owners: dict[str, list[str]] = {}
    for file in sorted(SHIM.glob("*.c")):
        for name in statics(file.read_text()):
            owners.setdefault(name, []).append(file.name)
    assert len(owners) > 150
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def test_all_forms_of_static_names_are_seen() -> None:
    text = """
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static int known[MOST];
static struct {
    int one;
} reserved[MOST];
static int settle(void)
__attribute__((constructor)) static void prepare(void)
static struct pool *pool_find(CUmemoryPool handle)
"""
    assert statics(text) == {"lock", "pools", "known", "reserved", "settle", "prepare", "pool_find"}


def _show(folder: Path) -> None:
    make("gres/shim", folder)
    for library in ("cuda", "nvml"):
        graph = symbols(folder / library)
        print(f"{library}:")
        for name in order(graph):
            print(f"  {name:20} {' '.join(sorted(graph[name]))}")


if __name__ == "__main__":
    _show(Path(sys.argv[1]).resolve())
