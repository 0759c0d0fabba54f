"""XML documents of WebDAV: parsed without anything that could grow, and written again."""

from __future__ import annotations

import functools
from typing import NoReturn
from xml.etree import ElementTree as ET
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from portal.node.file_server.http import Request

MOST_BYTES = 64 * 1024
MOST_DEPTH = 50
"""Elements inside of each other; writing them again is recursive."""
DAV = "{DAV:}"
"""Names are written as {namespace}name."""
ET.register_namespace("D", "DAV:")


def read(request: Request, limit: int = MOST_BYTES) -> bytes:
    """The document that a request contains; raises Refused (413)."""
    return b"".join(map(bytes, request.body(limit)))


def parse(document: bytes, root: str) -> ET.Element:
    """Parse a document whose outermost element has this name; raises Refused (400)."""
    parser = _Parser()
    try:
        element = parser.parse(document)
    except (expat.ExpatError, LookupError, ValueError):
        refuse()
    if element.tag != root:
        refuse(f"This is not an XML document “{root}”.")
    return element


def refuse(detail: str = "This is not XML without a document type.") -> NoReturn:
    """Raise the refusal of a document."""
    raise Refused(400, "value", detail)


class _Parser:
    """Builds a tree; a document type, which could define entities, is refused."""

    def __init__(self) -> None:
        self._builder = ET.TreeBuilder()
        self._depth = 0

    def parse(self, document: bytes) -> ET.Element:
        parser: Any = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = lambda *_: refuse()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._builder.data
        parser.Parse(document, True)
        return self._builder.close()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            refuse("This XML has too many elements inside of each other.")
        self._builder.start(_full(name), {_full(key): text for key, text in attributes.items()})

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._builder.end(_full(name))


def _full(name: str) -> str:
    return "{" + name if "}" in name else name


def text_of(element: ET.Element) -> str:
    """An element as XML that needs nothing around it."""
    element.tail = None
    # Otherwise a carriage return would be read as a line feed.
    return ET.tostring(element, encoding="unicode").replace("\r", "&#13;")


def element(name: str, inner: str = "") -> str:
    """An element of a name that a parser has accepted; `inner` is XML."""
    begin, end = _tags(name)
    return f"<{begin}>{inner}</{end}>" if inner else f"<{begin}/>"


@functools.lru_cache(1024)
def _tags(name: str) -> tuple[str, str]:
    space, _, local = name[1:].rpartition("}") if name.startswith("{") else ("", "", name)
    if space == "DAV:":
        return f"D:{local}", f"D:{local}"
    return f"{local} xmlns={quoteattr(space)}", local


def response(href: str, statuses: Sequence[tuple[str, str, str]]) -> str:
    """The element “response”: for each status, properties as XML and an error condition."""
    parts = [each for each in statuses if each[1]] or statuses[:1]
    text = "".join(_propstat(*each) for each in parts)
    return f"<D:response><D:href>{escape(href)}</D:href>{text}</D:response>\n"


def _propstat(status: str, properties: str, condition: str) -> str:
    error = f"<D:error>{condition}</D:error>" if condition else ""
    return (
        f"<D:propstat><D:prop>{properties}</D:prop>"
        f"<D:status>HTTP/1.1 {status}</D:status>{error}</D:propstat>"
    )


def multistatus(responses: str) -> str:
    """The document of a 207, in the namespace prefix D."""
    return f"{MULTISTATUS}{responses}{END}"


MULTISTATUS = '<D:multistatus xmlns:D="DAV:">\n'
END = "</D:multistatus>\n"
