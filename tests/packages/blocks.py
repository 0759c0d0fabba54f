"""Print a block of a guide as it is written: `blocks.py FILE HEADING NUMBER [OLD=NEW…]`.

The block is the NUMBERth one (from 1) below the heading that begins with HEADING.
"""

import re
import sys
from pathlib import Path


def block(text: str, heading: str, number: int) -> str:
    """The block; raises SystemExit if there is none."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = [body for title, body in sections.items() if title.startswith(heading)]
    if len(found) != 1:
        sys.exit(f"{len(found)} sections begin with {heading!r}: {', '.join(sections)}")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", found[0], re.DOTALL | re.MULTILINE)
    if len(blocks) < number:
        sys.exit(f"{heading!r} has {len(blocks)} blocks, not {number}")
    return str(blocks[number - 1])


def main(file: str, heading: str, number: str, *changes: str) -> None:
    """Print it with the example's names replaced."""
    shown = block(Path(file).read_text(encoding="utf-8"), heading, int(number))
    for change in changes:
        old, _, new = change.partition("=")
        if old not in shown:
            sys.exit(f"{heading!r}, block {number} has no {old!r}")
        shown = shown.replace(old, new)
    print(shown, end="")


main(*sys.argv[1:])
