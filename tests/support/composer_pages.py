"""The composer's form, and values of its page."""

from __future__ import annotations

import html
import re
from typing import Any

SCRIPT = '#!/bin/sh\nhostname <&> "\n'
FORM: dict[str, Any] = {"source": "editor", "script": SCRIPT.replace("\n", "\r\n"), "key": "k"}


def input_value(page: str, name: str) -> str:
    """The value of an input."""
    tag = re.search(rf'<input[^>]*\sname="{re.escape(name)}"[^>]*>', page)
    assert tag is not None, name
    value = re.search(r'\svalue="([^"]*)"', tag[0])
    return html.unescape(value[1]) if value else ""


def script_text(page: str) -> str:
    """The text of the editor."""
    text = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert text is not None
    return html.unescape(text[1])


def field_error(page: str, name: str) -> str:
    """The message beside a field; "" if it is hidden."""
    text = re.search(rf'id="error-{name}"( hidden)?>.*?<span>(.*?)</span>', page, re.DOTALL)
    assert text is not None, name
    return "" if text[1] else html.unescape(text[2])
