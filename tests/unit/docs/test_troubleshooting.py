"""Every message that the troubleshooting guide quotes is one that the program says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from portal.core.session.pending_reasons import explain_reason
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "administrators" / "troubleshooting.md"
APOSTROPHE = "\u2019"
ANY = "\0"
"""In place of what a message inserts."""


def quoted() -> list[str]:
    """What stands in quotation marks in the guide's tables."""
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    found = [text for line in lines if line.startswith("|") for text in re.findall("“(.+?)”", line)]
    return [text for text in found if text != "Pending reasons"]


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values
            ]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{[^{}]*\}", ANY, node.value)


@cache
def said() -> str:
    """All texts of the program and of its pages, one a line, without quotation marks' forms."""
    found = []
    for file in (ROOT / "portal").rglob("*.py"):
        if "node_modules" not in file.parts:
            found += list(_texts(ast.parse(file.read_text(encoding="utf-8"))))
    for file in (ROOT / "templates").rglob("*.html"):
        text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", ANY, file.read_text(encoding="utf-8"))
        found += re.sub(r"<[^>]+>", "\n", text).splitlines()
    return "\n".join(" ".join(text.split()) for text in found).replace(APOSTROPHE, "'")


def pattern(quote: str) -> re.Pattern[str]:
    """A quotation whose “…” stands for anything in the same text."""
    parts = [re.escape(part) for part in quote.replace(APOSTROPHE, "'").split("…")]
    return re.compile(r"[^\n]*?".join(parts))


def test_messages_are_quoted() -> None:
    assert len(quoted()) >= 40


def test_the_program_says_them() -> None:
    assert [quote for quote in quoted() if not pattern(quote).search(said())] == []


def test_a_message_that_nobody_says_is_found() -> None:
    assert not pattern("Slurm has not … answered since yesterday").search(said())


def test_reasons_have_the_words_that_are_quoted() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    table = text.partition("## Pending reasons")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| “(.+?)” \| (\w+) \|", table, re.MULTILINE)
    assert len(rows) >= 10
    for quote, code in rows:
        assert pattern(quote).search(explain_reason(code).text), code
