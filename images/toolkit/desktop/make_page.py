"""Create the desktop's page, one file with its styles and scripts.

Usage: make_page.py SCRIPT.js OUT.html
"""

import base64
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
ICON = HERE.parents[2] / "portal" / "web" / "static" / "favicon.svg"


def page(script: str) -> str:
    """The page with everything in it."""
    if "</script" in script.lower():
        sys.exit("make_page.py: the script would end early")
    text = (HERE / "page.html").read_text(encoding="utf-8")
    icon = base64.b64encode(ICON.read_bytes()).decode()
    css = (HERE / "page.css").read_text(encoding="utf-8")
    for mark, inserted in (("%ICON%", icon), ("%CSS%", css), ("%SCRIPT%", script)):
        text = text.replace(mark, inserted, 1)
    return text


if __name__ == "__main__":
    found = page(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    pathlib.Path(sys.argv[2]).write_text(found, encoding="utf-8")
