"""Every command of `slipway` in docs/administrators is one that the program takes."""

from __future__ import annotations

import re
import shlex

import pytest

from portal.cli.main import _parser
from tests.paths import ROOT

FOLDER = ROOT / "docs" / "administrators"
PAGES = sorted(FOLDER.glob("*.md"))
_COMMAND = re.compile(
    r"^\s*(?:.*\bslipway\s+)?(?:runuser -u slipway -- )?slipway ((?!-u |--version).+)$"
)


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for kind, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
            for line in block.splitlines() if not kind else ():
                if match := _COMMAND.match(line):
                    found.append((page.name, match[1]))
    return found


def test_there_are_pages_with_commands() -> None:
    known = {page.name for page in PAGES}
    assert known >= {
        "accounts.md",
        "backup.md",
        "break-in.md",
        "hosts.md",
        "install.md",
        "monitoring.md",
    }
    assert len(commands()) >= 15


@pytest.mark.parametrize(("page", "command"), commands())
def test_the_program_takes_it(page: str, command: str) -> None:
    words = shlex.split(re.sub(r"\$\([^)]*\)", "x", command))
    options = _parser().parse_args(words)
    assert options.action is not None, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: object) -> None:
    text = (FOLDER / getattr(page, "name", "")).read_text(encoding="utf-8")
    for name in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        assert (FOLDER / name).exists(), name
