"""What tests of WebDAV send and read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.unit.node.file_server.conftest import Answer, Client

DAV = "{DAV:}"


def dav(path: str) -> str:
    """The URL path of a location."""
    return f"/data/dav/{path}"


def to(path: str, **headers: str) -> dict[str, str]:
    """The headers of a copy or move."""
    return {"Destination": dav(path), **headers}


def properties_of(answer: Answer) -> dict[str, tuple[int, ET.Element]]:
    """Status and element of each property of a 207 about one resource, by name."""
    assert answer.status == 207, answer.body
    (response,) = ET.fromstring(answer.body).findall(DAV + "response")
    found = {}
    for part in response.findall(DAV + "propstat"):
        status = int((part.findtext(DAV + "status") or "").split()[1])
        prop = part.find(DAV + "prop")
        assert prop is not None
        found.update({each.tag: (status, each) for each in prop})
    return found


def ask(data: Client, path: str, *names: str) -> dict[str, tuple[int, ET.Element]]:
    """PROPFIND of properties, or of all."""
    prop = ET.Element(DAV + "propfind")
    if names:
        inner = ET.SubElement(prop, DAV + "prop")
        for name in names:
            ET.SubElement(inner, name)
    body = ET.tostring(prop) if names else b""
    return properties_of(data("PROPFIND", dav(path), body, {"Depth": "0"}))


def update(*changes: str, head: str = "") -> bytes:
    """The document of a PROPPATCH: `set` and `remove` elements with what is in their `prop`."""
    spaces = 'xmlns:D="DAV:" xmlns:x="urn:x"'
    return f"<D:propertyupdate {spaces}{head}>{''.join(changes)}</D:propertyupdate>".encode()


def set_(inner: str) -> str:
    """A change that sets properties."""
    return f"<D:set><D:prop>{inner}</D:prop></D:set>"


def remove(inner: str) -> str:
    """A change that removes properties."""
    return f"<D:remove><D:prop>{inner}</D:prop></D:remove>"


def lock_info(scope: str = "exclusive", owner: str = "<D:owner>me</D:owner>") -> bytes:
    """The document of a LOCK."""
    return (
        f'<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:{scope}/></D:lockscope>'
        f"<D:locktype><D:write/></D:locktype>{owner}</D:lockinfo>"
    ).encode()


def lock(data: Client, path: str, scope: str = "exclusive", **headers: str) -> str:
    """Lock a location; returns the token in angle brackets."""
    answer = data("LOCK", dav(path), lock_info(scope), headers)
    assert answer.status in (200, 201), answer.body
    return answer.headers["Lock-Token"]


def condition_of(answer: Answer) -> str:
    """The name of the error condition of RFC 4918, 16, in an answer."""
    root = ET.fromstring(answer.body)
    assert root.tag == DAV + "error"
    return root[0].tag.removeprefix(DAV)
