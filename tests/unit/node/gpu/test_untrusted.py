"""Reading what users write or name, and the table of all that is read so."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.gpu import untrusted
from tests.support.paths import ROOT
from tests.support.untrusted_names import SEPARATORS, names

GPU = ROOT / "portal" / "node" / "gpu"
TABLE = ROOT / "tests" / "root_reads.toml"
FORBIDDEN = {"splitlines", "read_text", "read_bytes", "decode", "getoutput", "popen"}
"""Methods that read, divide or decode text in their own way."""


def test_lines_end_at_newlines_alone() -> None:
    for name in names(50):
        text = untrusted.decode(b"a" + name + b"\nb\n")
        assert len(untrusted.lines(text)) == 2 + name.count(b"\n")
        assert text.encode("utf-8", "surrogateescape") == b"a" + name + b"\nb\n"
    assert untrusted.lines("") == []
    assert untrusted.lines("a\n\nb") == ["a", "", "b"]


@pytest.mark.parametrize("separator", SEPARATORS[1:])
def test_a_value_forges_no_key(separator: bytes) -> None:
    text = untrusted.decode(b"Name:\t" + separator + b"ShdPnd: zz\nShdPnd:\t0100\n")
    assert untrusted.fields(text)["ShdPnd"] == "0100"
    assert set(untrusted.fields(text)) == {"Name", "ShdPnd"}


def test_of_two_lines_of_a_key_the_last_counts() -> None:
    """A kernel that escapes no newline in a name prints the name first."""
    assert untrusted.fields("Name:\tx\nShdPnd: zz\nShdPnd:\t0\n")["ShdPnd"] == "0"


def test_a_message_is_one_printable_line() -> None:
    for name in names(50):
        text = untrusted.printable(untrusted.decode(name))
        assert text.isprintable()
        text.encode()
    assert untrusted.printable("a\nb\x1b[2J\udcff") == "a\\nb\\x1b[2J\\udcff"
    assert len(untrusted.printable("x" * 10**6)) <= untrusted.LONGEST + 1


def test_a_command_may_print_any_bytes() -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256))); sys.exit(3)"
    done = untrusted.run([sys.executable, "-c", code], 60)
    assert (done.code, done.stderr) == (3, "")
    assert done.stdout.encode("utf-8", "surrogateescape") == bytes(range(256))
    with pytest.raises(untrusted.CommandError, match="none-such"):
        untrusted.run(["none-such"], 5)


def test_a_question_without_an_answer_costs_one_wait() -> None:
    patient = untrusted.TimedQuery[int](0.05)

    def fail() -> int:
        raise ValueError("odd")

    assert patient(7, lambda: 3) == 3
    assert patient(7, fail) is None
    assert patient(7, lambda: 4) == 4


# The table


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(GPU.rglob("*.py")):
        name = file.relative_to(GPU).as_posix()
        if name != "untrusted.py":
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def _calls(node: ast.AST, place: str = "") -> Iterator[tuple[str, ast.AST]]:
    """All nodes below, with the function that they are in."""
    for child in ast.iter_child_nodes(node):
        inside = place
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inside = f"{place}.{child.name}".lstrip(".")
        yield inside, child
        yield from _calls(child, inside)


def _of_module(node: ast.AST) -> str:
    """The name in `untrusted.name`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "untrusted" else ""
    return ""


def test_everything_is_read_by_the_module() -> None:
    wrong = []
    for name, tree in _modules():
        for place, node in _calls(tree):
            if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN and not _of_module(node):
                wrong.append(f"{name} {place}: .{node.attr}")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open":
                wrong.append(f"{name} {place}: open")
            if isinstance(node, ast.Import) and any(one.name == "subprocess" for one in node.names):
                wrong.append(f"{name}: subprocess")
            if isinstance(node, ast.ImportFrom) and node.module == "portal.node.gpu.untrusted":
                wrong.append(f"{name}: import the module, so that this test sees its calls")
    assert wrong == []


def test_the_table_has_every_read() -> None:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    listed = [call for row in rows["read"] for call in row["calls"]]
    assert len(listed) == len(set(listed))
    types = {"Completed", "CommandError"}
    found = {
        f"{name} {place} {what}"
        for name, tree in _modules()
        for place, node in _calls(tree)
        if (what := _of_module(node)) and what not in types
    }
    assert set(listed) == found
    for row in [*rows["read"], *rows["other"]]:
        assert all(row[key].strip() for key in ("what", "writes", "divided", "costs"))


def test_what_is_read_otherwise_is_as_the_table_says() -> None:
    for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["other"]:
        text = (ROOT / row["file"]).read_text(encoding="utf-8")
        quote = row["quote"].encode("unicode_escape").decode()
        assert row["quote"] in text or quote in text, row["what"]
    programs = {file.name for file in Path(ROOT / "slurm_plugins").iterdir()}
    assert programs == {
        *("Makefile", "README.md", "prolog.sh", "epilog.sh", "health.sh", "unkillable.sh"),
        "spank_slipway.c",
    }, "a new program of root's: list in root_reads.toml what it reads"
