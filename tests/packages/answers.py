"""Whether a portal answers: `answers.py URL` waits for its log-in page and fetches its styles."""

import re
import sys
import time
import urllib.error
import urllib.request


def fetch(url: str) -> str:
    """The body of a page; raises OSError."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def main(base: str) -> None:
    """Fetch the page and what it names."""
    until = time.monotonic() + 240
    while True:
        try:
            page = fetch(f"{base}/login")
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    assert re.search(r"Slipway \d+\.\d+\.\d+", page), page
    sheets = re.findall(r'href="(/[^"]+\.css[^"]*)"', page)
    assert any("/static/built/shared-" in sheet for sheet in sheets), sheets
    for sheet in sheets:
        assert len(fetch(base + sheet)) > 100, sheet
    print(f"- {base} answers, with {len(sheets)} style sheets")


main(sys.argv[1])
