"""PROPPATCH: dead properties that stay with the file, times, and all changes or none."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from portal.node.file_server import at
from portal.node.file_server.dav import properties
from tests.unit.node.file_server.conftest import Answer, Client
from tests.unit.node.file_server.dav.conftest import (
    DAV,
    ask,
    condition_of,
    dav,
    properties_of,
    remove,
    set_,
    to,
    update,
)

AUTHOR, TITLE = "{urn:x}author", "{urn:x}title"
BOTH = set_("<x:author>Ada</x:author><x:title>Notes</x:title>")
MS = "{urn:schemas-microsoft-com:}"


def patch(data: Client, path: str, body: bytes) -> Answer:
    return data("PROPPATCH", dav(path), body)


def text(found: dict[str, tuple[int, ET.Element]], name: str) -> str | None:
    return found[name][1].text if found[name][0] == 200 else None


@pytest.fixture
def file(home: Path) -> Path:
    (home / "file").write_text("1")
    return home / "file"


@pytest.mark.usefixtures("file")
def test_dead_properties_are_set_read_and_removed(data: Client) -> None:
    answer = patch(data, "home/file", update(BOTH))
    assert {name: status for name, (status, _) in properties_of(answer).items()} == {
        AUTHOR: 200,
        TITLE: 200,
    }
    found = ask(data, "home/file", AUTHOR, TITLE, "{urn:x}other", "none")
    assert (text(found, AUTHOR), text(found, TITLE)) == ("Ada", "Notes")
    assert (found["{urn:x}other"][0], found["none"][0]) == (404, 404)
    assert text(ask(data, "home/file"), AUTHOR) == "Ada", "allprop has the dead ones"
    patch(data, "home/file", update(remove("<x:author/><x:never/>")))
    assert ask(data, "home/file", AUTHOR)[AUTHOR][0] == 404
    assert text(ask(data, "home/file", TITLE), TITLE) == "Notes"


def test_changes_are_made_in_their_order(data: Client, file: Path) -> None:
    one, two = set_("<x:author>1</x:author>"), set_("<x:author>2</x:author>")
    for changes, expected in (
        ((one, two), "2"),
        ((two, one), "1"),
        ((remove("<x:author/>"), two), "2"),
        ((one, remove("<x:author/>")), None),
    ):
        assert patch(data, "home/file", update(*changes)).status == 207
        assert text(ask(data, "home/file", AUTHOR), AUTHOR) == expected
    assert os.listxattr(file) == [], "nothing is left of it"


VALUES = [
    "",
    "plain",
    "ä日本\U0001f600",
    "&lt;&amp;&gt;&quot;",
    "line&#13;&#10;end",
    "<y:deep xmlns:y='urn:y' y:a='1' b='&lt;'>x<y:z/>tail</y:deep>",
    "<none xmlns=''><D:inner/></none>",
    "<![CDATA[<no element>]]>",
]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back_as_it_was_sent(data: Client, value: str) -> None:
    patch(data, "home/file", update(set_(f"<x:author>{value}</x:author>")))
    patch(data, "home/file", update(set_("<x:title>read and written again</x:title>")))
    sent = ET.fromstring(f"<x:author xmlns:x='urn:x' xmlns:D='DAV:'>{value}</x:author>")
    found = ask(data, "home/file", AUTHOR)[AUTHOR][1]
    assert ET.canonicalize(ET.tostring(found)) == ET.canonicalize(ET.tostring(sent))


@pytest.mark.usefixtures("file")
def test_the_language_belongs_to_the_value(data: Client) -> None:
    values = "<x:author>Ada</x:author><x:title xml:lang='en'>Notes</x:title>"
    patch(data, "home/file", update(set_(values), head=" xml:lang='de'"))
    found = ask(data, "home/file")
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    assert [found[name][1].get(language) for name in (AUTHOR, TITLE)] == ["de", "en"]


def test_they_survive_copy_move_and_a_new_version(data: Client, home: Path) -> None:
    (home / "tree/deep").mkdir(parents=True)
    (home / "tree/deep/file").write_text("1")
    for path in ("tree", "tree/deep", "tree/deep/file"):
        assert patch(data, f"home/{path}", update(BOTH)).status == 207
    assert data("COPY", dav("home/tree"), headers=to("storage/copy")).status == 201
    assert data("MOVE", dav("home/tree"), headers=to("home/moved")).status == 201
    assert data("COPY", dav("home/moved"), headers=to("home/alone", Depth="0")).status == 201
    assert data("PUT", dav("home/moved/deep/file"), b"2").status == 200
    for top in ("storage/copy", "home/moved"):
        for below in ("", "/deep", "/deep/file"):
            found = ask(data, top + below, AUTHOR)
            assert text(found, AUTHOR) == "Ada", top + below
    assert text(ask(data, "home/alone", AUTHOR), AUTHOR) == "Ada"


def test_a_link_has_the_properties_of_what_it_leads_to(data: Client, home: Path) -> None:
    (home / "file").write_text("1")
    (home / "link").symlink_to("file")
    patch(data, "home/link", update(BOTH))
    assert text(ask(data, "home/file", AUTHOR), AUTHOR) == "Ada"
    answer = data("PROPFIND", dav("home"), b"", {"Depth": "1"})
    assert answer.body.count(b">Ada<") == 2


def test_what_others_wrote_into_the_attribute_is_no_property(data: Client, file: Path) -> None:
    for value in (b"", b"nonsense", b"<other><x/></other>", b"<!DOCTYPE p><properties/>"):
        os.setxattr(file, properties.ATTRIBUTE, value)
        assert AUTHOR not in ask(data, "home/file")
    assert patch(data, "home/file", update(BOTH)).status == 207
    assert text(ask(data, "home/file", AUTHOR), AUTHOR) == "Ada"


@pytest.mark.usefixtures("file")
def test_programs_that_set_properties_at_once_lose_none(
    client: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = properties.read_dead

    def slow(descriptor: int) -> dict[str, ET.Element]:
        found = read(descriptor)
        time.sleep(0.02)
        return found

    monkeypatch.setattr(properties, "read_dead", slow)
    programs = [
        threading.Thread(target=patch, args=(data, "home/file", update(set_(f"<x:n{number}/>"))))
        for number, data in enumerate([client("files") for _ in range(5)])
    ]
    for program in programs:
        program.start()
    for program in programs:
        program.join(20)
    found = ask(client("files"), "home/file")
    assert {f"{{urn:x}}n{number}" for number in range(5)} <= set(found)


# All or nothing


@pytest.mark.parametrize(
    "name",
    [
        "getetag",
        "getcontentlength",
        "resourcetype",
        "lockdiscovery",
        "supportedlock",
        "creationdate",
    ],
)
@pytest.mark.parametrize("change", [set_, remove])
@pytest.mark.usefixtures("file")
def test_protected_properties_prevent_all_changes(data: Client, name: str, change: object) -> None:
    assert callable(change)
    answer = patch(data, "home/file", update(BOTH, change(f"<D:{name}/>")))
    found = {key: status for key, (status, _) in properties_of(answer).items()}
    assert found == {AUTHOR: 424, TITLE: 424, DAV + name: 403}
    error = ET.fromstring(answer.body).find(f".//{DAV}propstat/{DAV}error")
    assert error is not None
    assert error[0].tag == DAV + "cannot-modify-protected-property"
    assert ask(data, "home/file", AUTHOR)[AUTHOR][0] == 404


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (errno.EOPNOTSUPP, 403),
        (errno.EPERM, 403),
        (errno.ENOSPC, 507),
        (errno.EDQUOT, 507),
        (errno.E2BIG, 507),
    ],
)
def test_a_file_system_that_keeps_no_attributes(
    data: Client, file: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "")

    monkeypatch.setattr(at, "set_attribute", refuse)
    os.utime(file, (1000, 2000))
    modified = set_("<D:getlastmodified>Fri, 14 Jul 2017 02:40:00 GMT</D:getlastmodified>")
    answer = patch(data, "home/file", update(modified, BOTH, remove("<x:never/>")))
    found = {key: found for key, (found, _) in properties_of(answer).items()}
    assert found == {
        AUTHOR: status,
        TITLE: status,
        "{urn:x}never": status,
        DAV + "getlastmodified": 424,
    }
    assert (file.stat().st_atime, file.stat().st_mtime) == (1000, 2000)
    answer = patch(data, "home/file", update(remove("<x:never/>")))
    assert properties_of(answer)["{urn:x}never"][0] == 200, "there is nothing to write"


def test_properties_are_bounded(data: Client, file: Path) -> None:
    patch(data, "home/file", update(BOTH))
    long = "x" * (properties.MOST_BYTES + 1)
    answer = patch(data, "home/file", update(set_(f"<x:author>{long}</x:author>")))
    assert properties_of(answer)[AUTHOR][0] == 507
    assert text(ask(data, "home/file", AUTHOR), AUTHOR) == "Ada"
    too_long = "x" * 70_000
    assert patch(data, "home/file", update(set_(f"<x:a>{too_long}</x:a>"))).status == 413
    deep = "<x:a>" * 100 + "</x:a>" * 100
    assert patch(data, "home/file", update(set_(deep))).status == 400
    assert file.read_text() == "1"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<x/>",
        b"<propertyupdate/>",
        b'<D:propertyupdate xmlns:D="DAV:"/>',
        b'<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop/></D:set></D:propertyupdate>',
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + update(set_("<x:a>&b;</x:a>")),
        update(set_("<undeclared:a/>")),
        b'<?xml version="1.0" encoding="klingon"?><a/>',
    ],
)
@pytest.mark.usefixtures("file")
def test_malformed_documents(data: Client, body: bytes) -> None:
    assert patch(data, "home/file", body).status == 400


def test_what_cannot_have_properties(data: Client, home: Path) -> None:
    assert patch(data, "home/none", update(BOTH)).status == 404
    assert patch(data, "home", update(BOTH)).status == 405
    os.mkfifo(home / "fifo")
    assert properties_of(patch(data, "home/fifo", update(BOTH)))[AUTHOR][0] == 403


# Times


@pytest.mark.parametrize(
    ("property_", "read"),
    [
        (
            "<D:getlastmodified>Fri, 14 Jul 2017 02:40:00 GMT</D:getlastmodified>",
            DAV + "getlastmodified",
        ),
        ("<D:lastmodified>1500000000</D:lastmodified>", DAV + "lastmodified"),
        ("<D:lastmodified>Fri, 14 Jul 2017 02:40:00 GMT</D:lastmodified>", DAV + "lastmodified"),
        (
            "<m:Win32LastModifiedTime xmlns:m='urn:schemas-microsoft-com:'>"
            "Fri, 14 Jul 2017 02:40:00 GMT</m:Win32LastModifiedTime>",
            MS + "Win32LastModifiedTime",
        ),
    ],
)
def test_programs_set_the_time_of_modification(
    data: Client, file: Path, property_: str, read: str
) -> None:
    os.utime(file, (1000, 2000))
    assert properties_of(patch(data, "home/file", update(set_(property_))))[read][0] == 200
    assert (file.stat().st_atime, file.stat().st_mtime) == (1000, 1500000000)
    expected = "1500000000" if read == DAV + "lastmodified" else "Fri, 14 Jul 2017 02:40:00 GMT"
    assert text(ask(data, "home/file", read), read) == expected
    assert os.listxattr(file) == []
    os.utime(file, (1000, 3000))
    assert text(ask(data, "home/file", read), read) != expected, "it is the file's, not a copy"


def test_what_windows_sends_after_each_file(data: Client, file: Path) -> None:
    names = ("CreationTime", "LastAccessTime", "LastModifiedTime", "FileAttributes")
    values = ("Fri, 14 Jul 2017 02:40:00 GMT",) * 3 + ("00000020",)
    inner = "".join(
        f"<Z:Win32{name}>{value}</Z:Win32{name}>" for name, value in zip(names, values, strict=True)
    )
    body = update(set_(inner), head=' xmlns:Z="urn:schemas-microsoft-com:"')
    found = properties_of(patch(data, "home/file", body))
    assert {status for status, _ in found.values()} == {200}
    assert file.stat().st_mtime == 1500000000
    assert text(ask(data, "home/file"), MS + "Win32FileAttributes") == "00000020"


@pytest.mark.parametrize(
    "value", ["", "yesterday", "-" * 30, "9" * 30, "nan", "Fri, 32 Jul 2017 02:40:00 GMT"]
)
def test_times_that_are_none(data: Client, file: Path, value: str) -> None:
    os.utime(file, (1000, 2000))
    change = set_(f"<x:author>Ada</x:author><D:lastmodified>{value}</D:lastmodified>")
    found = properties_of(patch(data, "home/file", update(change)))
    assert (found[AUTHOR][0], found[DAV + "lastmodified"][0]) == (424, 409)
    found = properties_of(patch(data, "home/file", update(remove("<D:getlastmodified/>"))))
    assert found[DAV + "getlastmodified"][0] == 403
    assert file.stat().st_mtime == 2000


def test_who_does_not_own_the_file_sets_no_time(
    data: Client, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "")

    monkeypatch.setattr(at, "set_times", refuse)
    change = set_("<x:author>Ada</x:author><D:lastmodified>1500000000</D:lastmodified>")
    found = properties_of(patch(data, "home/file", update(change)))
    assert (found[AUTHOR][0], found[DAV + "lastmodified"][0]) == (424, 403)
    assert os.listxattr(file) == []


# Conditions


@pytest.mark.usefixtures("file")
def test_preconditions_hold_for_properties(data: Client) -> None:
    answer = data("PROPPATCH", dav("home/file"), update(BOTH), {"If-Match": '"wrong"'})
    assert answer.status == 412
    assert ask(data, "home/file", AUTHOR)[AUTHOR][0] == 404


# PROPFIND


@pytest.mark.usefixtures("file")
def test_the_forms_of_a_question(data: Client) -> None:
    patch(data, "home/file", update(BOTH))

    def form(inner: str) -> dict[str, tuple[int, ET.Element]]:
        body = f'<propfind xmlns="DAV:" xmlns:x="urn:x">{inner}</propfind>'.encode()
        return properties_of(data("PROPFIND", dav("home/file"), body, {"Depth": "0"}))

    names = form("<propname/>")
    assert {AUTHOR, DAV + "getetag", DAV + "lockdiscovery", DAV + "supportedlock"} <= set(names)
    assert all(not len(each) and not each.text for _, each in names.values())
    everything = form("<allprop/>")
    assert set(everything) == set(names)
    assert everything[DAV + "getcontentlength"][1].text == "1"
    assert [
        each[0].tag for each in everything[DAV + "supportedlock"][1].iter(DAV + "lockscope")
    ] == [
        DAV + "exclusive",
        DAV + "shared",
    ]
    more = form("<allprop/><include><lastmodified/><x:none/><x:author/></include>")
    assert more[DAV + "lastmodified"][0] == 200
    assert more["{urn:x}none"][0] == 404
    assert set(more) == set(names) | {DAV + "lastmodified", "{urn:x}none"}
    answer = data(
        "PROPFIND", dav("home/file"), b'<propfind xmlns="DAV:"><prop/></propfind>', {"Depth": "0"}
    )
    assert b"200 OK" in answer.body, "a response has a status"


def test_an_infinite_depth_is_refused_as_rfc_4918_says(data: Client) -> None:
    for headers in ({}, {"Depth": "infinity"}, {"Depth": "Infinity"}):
        answer = data("PROPFIND", dav("home"), b"", headers)
        assert (answer.status, condition_of(answer)) == (403, "propfind-finite-depth")
    assert data("PROPFIND", dav("home"), b"", {"Depth": "2"}).status == 400
