"""Every command of `slipway` in docs/ and README.md is one that the programs take."""

from __future__ import annotations

import argparse
import re
import shlex

import pytest

from portal.cli.main import _parser
from portal.node.batch.options import OptionError
from portal.node.batch.options import parse as options_of_batch
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "administrators"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
BATCH = ("sbatch", "srun", "salloc")
"""Commands of the program on login nodes, portal/node/batch."""
_COMMAND = re.compile(
    r"^\s*(?:.*\bslipway\s+)?(?:runuser -u slipway -- )?slipway ((?!-u |--version).+)$"
)


def commands() -> list[tuple[str, str, bool]]:
    """Pages, commands on them, and whether one stands in a sentence."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        blocks = r"^ *```(\w*)\n(.*?)^ *```$"
        for kind, block in re.findall(blocks, text, re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines() if kind in ("", "sh") else ():
                if match := _COMMAND.match(line):
                    found.append((name, match[1], False))
        for inline in re.findall(r"`(slipway [a-z][^`\n]*)`", text):
            if match := _COMMAND.match(inline):
                found.append((name, match[1], True))
    return found


def test_there_are_pages_with_commands() -> None:
    known = {page.name for page in PAGES}
    pages = {"accounts", "backup", "break-in", "hosts", "install", "monitoring"}
    pages |= {"troubleshooting", "capacity", "comparison", "requirements"}
    assert known >= {f"{page}.md" for page in pages}
    assert len(commands()) >= 60


def test_the_program_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    refused = [
        f"{page}: {command}" for page, command, named in commands() if not is_taken(command, named)
    ]
    assert refused == [], capsys.readouterr().err


def is_taken(command: str, named: bool) -> bool:
    """Whether a program takes the words after "slipway"; `named`: they may be a command's name."""
    words = shlex.split(re.sub(r"\$\([^)]*\)", "x", command), comments=True)
    if words[0] in BATCH:
        try:
            options_of_batch(words[0], words[1:])
        except OptionError:
            return False
        return True
    if words[0] == "file-server":  # of the program on login nodes, which people do not type
        return True
    parser, rest = _subcommand(words)
    if named and not rest:  # the name of a command
        return parser.prog.split()[1:] == words
    try:
        _parser().parse_args(words)
    except SystemExit:
        return False
    return True


def _subcommand(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of a command and its actions, and the words after these."""
    parser, rest = _parser(), list(words)
    while rest:
        subs = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not subs or rest[0] not in subs[0].choices:
            break
        parser = subs[0].choices[rest.pop(0)]
    return parser, rest


def test_what_the_program_does_not_take_is_found() -> None:
    for command in ("images biuld r/4.5", "maintenance on", "backup --encypt x", "chek --local"):
        assert not is_taken(command, False)
    assert not is_taken("sbatch --image", False)


def test_links_lead_somewhere() -> None:
    generated = ("reference/", "../reference/")  # by docs/hooks.py
    broken = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in re.findall(r"\]\(([\w./-]+\.md)\)", page.read_text(encoding="utf-8"))
        if not name.startswith(generated) and not (page.parent / name).exists()
    ]
    assert broken == []
