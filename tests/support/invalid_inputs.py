"""Regression table of invalid input and the expected error responses, shared by all tests.

Unit tests send each row to the application, attack tests one row of each mechanism to the running
system. A row's id is its id in the list of findings.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

LAUNCH: dict[str, Any] = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
FORM = {
    "environment": "python",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "confirmed": "yes",
}
TEMPLATE: dict[str, Any] = {"title": "Small", "resources": {"cpus": 1, "memory": "2g"}}
NO_CAPS: dict[str, Any] = {"max_shared_memory": None}
CAPS_FORM = {"idle_cpu_percent": "10", "public_apps": "on", "preferred_ports": "on"}
LIBRARY = ("Value error", "Input should", "Assertion failed", "should be a valid", "pydantic")
"""Phrases of library error messages, which must not reach the client."""
MAX_ANSWER = 16 * 1024


def resources(**changes: Any) -> dict[str, Any]:
    """A launch with these resources changed."""
    return {**LAUNCH, "resources": {**LAUNCH["resources"], **changes}}


def cursor(*parts: Any) -> str:
    """A forged cursor."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@dataclasses.dataclass(frozen=True)
class Row:
    """An API request and the expected response: status, field and words."""

    id: str
    method: str
    path: str
    status: int
    field: str
    words: str
    json: Any = None
    raw: bytes | None = None
    query: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    admin: bool = False

    def __str__(self) -> str:
        return f"{self.id}-{self.field}"

    @property
    def body(self) -> bytes | None:
        """The request body."""
        if self.json is None:
            return self.raw
        return json.dumps(self.json, separators=(",", ":")).encode()


@dataclasses.dataclass(frozen=True)
class FormRow:
    """A form submission and the words that its page must show."""

    id: str
    path: str
    words: str
    data: dict[str, str]
    status: int = 422
    admin: bool = False

    def __str__(self) -> str:
        return f"{self.id}-{self.path}"


AnyRow = TypeVar("AnyRow", Row, FormRow)


def first_of_each(rows: Iterable[AnyRow], key: Callable[[AnyRow], object]) -> list[AnyRow]:
    """The first row for each key, in the order of the rows."""
    chosen: dict[object, AnyRow] = {}
    for row in rows:
        chosen.setdefault(key(row), row)
    return list(chosen.values())


def _launch(row: str, where: str, words: str, body: Any, status: int = 422) -> Row:
    return Row(row, "POST", "/sessions", status, where, words, json=body)


def _raw(row: str, words: str, raw: bytes, status: int = 400) -> Row:
    return Row(row, "POST", "/sessions", status, "", words, raw=raw)


PLACE = "/admin/templates/badinput"
LATE, EARLY = "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"
NO_OBJECTS = [
    Row("E48", method, path, 422, "body", "must be an object", raw=body, admin=True)
    for body in (b"[]", b"null", b'"x"', b"5")
    for method, path in (
        ("POST", "/sessions/end"),
        ("POST", "/folders"),
        ("PUT", PLACE),
        ("PUT", "/admin/caps"),
        ("PUT", "/admin/images/python/3.13"),
    )
]

ROWS = [
    *(
        _launch("12", "name", "letters and digits of any script", {**LAUNCH, "name": name})
        for name in ("ab\u200bcd", "ab\u202ecd", "Zoë session", "abc", "\u0301abc", "a" * 65)
    ),
    _launch("12", "name", "letters and digits of any script", {**LAUNCH, "name": "\u3164" * 4}),
    _launch("14", "resources.cpus", "at least 1", resources(cpus=-1)),
    _launch("14", "time_limit", "at least 1 minute", {**LAUNCH, "time_limit": -1}),
    _launch("15", "time_limit", "at most 365 days", {**LAUNCH, "time_limit": 10**30}),
    _launch("15", "resources.cpus", "at most 4096", resources(cpus=10**9)),
    _launch("15", "resources.cpus", "at most 4096", resources(cpus=10**30)),
    _raw(
        "15",
        "at most 4096",
        b'{"environment":"python","resources":{"memory":"1g","cpus":' + b"9" * 5000 + b"}}",
        422,
    ),
    *(
        _launch("18", "resources.memory", "write a size with its unit", resources(memory=size))
        for size in ("1G\n", "\u20031g\u2028", " 1g", "1g ", "1 g b", "1G\n#SBATCH")
    ),
    _launch("45", "env", "there may be 100", {**LAUNCH, "env": {f"A{n}": "" for n in range(101)}}),
    _launch(
        "45", "env", "65,536 bytes", {**LAUNCH, "env": {f"A{n}": "x" * 4000 for n in range(17)}}
    ),
    _raw("51", "key \\\"name\\\" twice", b'{"name": "a", "name": "b"}'),
    _raw("51", "key \\\"a\\\" twice", b'{"env": {"a": "1", "a": "2"}}'),
    *(
        _raw("51", "nested too deeply", b'{"x": ' + b"[" * n + b"]" * n + b"}")
        for n in (100, 1000, 5000, 100_000)
    ),
    _raw("51", "not valid JSON: line 1, column 2", b"{{{garbage"),
    _raw("51", "not valid JSON", b'{"x": NaN}'),
    _raw("51", "not valid UTF-8", b'{"x": "\xff"}'),
    *(
        Row("E1", "GET", "/sessions", 422, "cursor", "cursor of an earlier answer", query=query)
        for query in (
            [("sort", "name"), ("cursor", cursor("name", False, False, "\ud800", "a"))],
            [("sort", "name"), ("cursor", cursor("name", False, False, "a", "\ud800"))],
            [("cursor", cursor("-created", False, True, EARLY, "a"))],
            [("cursor", cursor("-created", False, True, LATE, "a"))],
            [("cursor", cursor("-created", False, True, "2026-11-20T12:00:00", "a"))],
            [("cursor", "[]")],
        )
    ),
    *(
        Row("E2", "GET", "/journal", 422, name, "1 to 9999", query=[(name, moment)], admin=True)
        for name, moment in (("since", EARLY), ("until", LATE))
    ),
    Row("E2", "GET", "/journal", 422, "since", "offset", query=[("since", "soon")], admin=True),
    _launch("E5", "mounts", "far more than any", {**LAUNCH, "mounts": [0] * 400_000}),
    _launch("E5", "mounts", "there may be 20", {**LAUNCH, "mounts": [0] * 21}),
    _launch("E5", "x", "more than any request needs", {"x": [[0] * 900] * 400}),
    _launch("E5", "body", "more than any request", {f"f{n}": 0 for n in range(50_000)}),
    _launch("E5", "env", "there may be 100", {**LAUNCH, "env": {f"é{n}": 0 for n in range(900)}}),
    Row("E5", "POST", "/sessions/end", 422, "ids", "far more", json={"ids": [0] * 400_000}),
    Row("E5", "POST", "/sessions/end", 422, "ids", "1 to 500", json={"ids": [0] * 501}),
    Row("E5", "POST", "/sessions/end", 422, "ids", "1 to 500", json={"ids": []}),
    Row(
        "E5",
        "PUT",
        "/admin/images/python/3.13",
        422,
        "users",
        "more than any request needs",
        json={"seen_by": "some", "users": [0] * 400_000},
        admin=True,
    ),
    *(
        Row("E9", "PUT", f"/presets/{name}", 422, "name", "begin with a letter or a digit", LAUNCH)
        for name in ("-a", "_a", "%20a", "a%20", "%C3%A9")
    ),
    *(
        Row("E10", "POST", f"/sessions/{{session}}/{what}", status, where, words, json, raw)
        for what in ("relaunch", "keep", "release")
        for status, where, words, json, raw in (
            (422, "count", "there is no such field", {"count": 5}, None),
            (400, "", "not valid JSON", None, b"{{{garbage"),
        )
    ),
    Row("E10", "POST", "/presets/x/launch", 422, "uid", "no such field", json={"uid": 0}),
    Row("E10", "DELETE", "/sessions/{session}", 422, "x", "no such field", json={"x": 0}),
    Row("E24", "PUT", PLACE, 422, "title", "empty", json={**TEMPLATE, "title": "   "}, admin=True),
    Row("E24", "PUT", PLACE, 422, "title", "up to 60", json={**TEMPLATE, "title": "x" * 61},
        admin=True),
    *(
        Row("E27", "PUT", "/admin/caps", 422, name, words, json=NO_CAPS | {name: value}, admin=True)
        for name, value, words in (
            ("max_shared_memory", "1", "write a size with its unit"),
            ("max_shared_memory", 5, "write a size with its unit"),
            ("max_shared_memory", "65t", "at most 64 TB"),
            ("max_shared_memory", "0m", "at least 1 MB"),
            ("idle_minutes", 0, "at least 1"),
            ("idle_minutes", "60", "whole number"),
            ("idle_warning", 5, "if unused sessions are never ended"),
            ("public_apps", "on", "true or false"),
        )
    ),
    Row("E28", "GET", "/journal", 422, "who", "printable", query=[("who", "a\0")], admin=True),
    Row("E28", "GET", "/journal", 422, "limit", "only once", query=[("limit", "1")] * 2,
        admin=True),
    Row("E28", "GET", "/journal", 422, "limit", "at most 500", query=[("limit", "9" * 400)],
        admin=True),
    Row("E32", "POST", "/sessions", 422, "Idempotency-Key", "255", LAUNCH,
        headers={"Idempotency-Key": "k" * 256}),
    _launch("E46", "resources.fgpu", "at most 1024", resources(fgpu=10**9)),
    _launch("E46", "resources.fgpu", "must be a number", resources(fgpu="0.5")),
    _launch("E46", "resources.fgpu", "above 0", resources(fgpu=0)),
    _launch("E46", "resources.memory", "at most 64 TB", resources(memory="999999999t")),
    _launch("E46", "resources.memory", "at least 0.25 GB", resources(memory="255m")),
    Row("E47", "POST", "/folders", 422, "name", "must be text", json={"name": 5}),
    Row("E47", "POST", "/folders", 422, "name", "line breaks", json={"name": "a\nb"}),
    *(
        Row("E48", "POST", "/sessions", 422, "body", "send an object", raw=body)
        for body in (b"[]", b"null", b'"x"', b"5")
    ),
    *NO_OBJECTS,
    *(
        Row("J61", "POST", f"/jobs/{action}", 422, where, words, json=body)
        for action in ("cancel", "hold", "release", "requeue")
        for where, words, body in (
            ("ids", "1 to 500 jobs", {"ids": []}),
            ("ids", "1 to 500 jobs", {"ids": ["1"] * 501}),
            ("ids", "far more", {"ids": [0] * 400_000}),
            ("ids", "this is needed", {}),
            ("ids", "must be a list", {"ids": "1"}),
            ("ids.1", "as Slurm shows it", {"ids": ["1", "1; scancel -u bob"]}),
            ("ids.0", "must be text", {"ids": [1]}),
            ("uid", "no such field", {"ids": ["1"], "uid": 0}),
        )
    ),
    *(
        Row("J62", "POST", "/jobs/hold", 422, "ids.0", "as Slurm shows it", json={"ids": [number]})
        for number in ("", " 1", "1\n", "-1", "\uff11", "1_", "1_[", "1+", "1_[0-9]; rm", "9" * 11)
    ),
    *(
        Row("J63", "GET", "/jobs", 422, name, words, query=[(name, value)])
        for name, value, words in (
            ("state", "all", "choose"),
            ("slurm_state", "running", "choose"),
            ("sessions", "perhaps", "choose"),
            ("array", "1_2", "number of an array"),
            ("array", "9" * 11, "number of an array"),
            ("partition", "a\0", "printable"),
            ("q", "x" * 201, "up to 200"),
            ("days", "0", "at least 1"),
            ("limit", "501", "at most 500"),
            ("sort", "price", "choose"),
            ("group", "main", "no such field"),
            ("cursor", cursor("-submitted", False, True, LATE, "1"), "cursor of an earlier"),
            ("cursor", cursor("-submitted", False, False, "x", "1"), "cursor of an earlier"),
        )
    ),
    Row("J64", "DELETE", "/jobs/1", 422, "x", "no such field", json={"x": 0}),
    Row("J64", "DELETE", "/jobs/4294967295", 404, "", "There is no such job."),
    Row("J64", "POST", "/jobs/4294967295/extend", 404, "", "no such job", json={"minutes": 5}),
]  # fmt: skip


def _form(row: str, words: str, **changes: str) -> FormRow:
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return FormRow(row, "/sessions", words, FORM | named)


def _caps(row: str, words: str, **changes: str) -> FormRow:
    return FormRow(row, "/admin/caps", words, CAPS_FORM | changes, admin=True)


FORM_ROWS = [
    _form("14", "This must be at least 1", resources__cpus="-1"),
    _form("14", "This must be at least 1 minute", time_limit="0"),
    _form("14", "This must be at most 365 days", time_limit="366 d"),
    _form("14", "Write a time, for example 90 (minutes)", time_limit="-5"),
    _form("14", "This must be a whole number", resources__cpus="1.5"),
    _caps("14", "This must be at least 1", idle_minutes="-1"),
    _form("15", "This must be at most 4096", resources__cpus=str(10**9)),
    _form("15", "This must be at most 4096", resources__cpus="9" * 5000),
    _caps("15", "This must be at most 525600", idle_minutes="9" * 40),
    _form("18", "Write a size with its unit", resources__memory="1G\n"),
    _form("18", "Write a size with its unit", resources__memory="\u20031g\u2028"),
    _form("45", "65,536 bytes", env=json.dumps({f"A{n}": "x" * 4000 for n in range(17)})),
    FormRow("E24", "/admin/templates", "This is needed", admin=True,
            data={"name": "badinput", "title": "   ", "resources.cpus": "1",
                  "resources.memory": "1 GB"}),
    FormRow("E24", "/admin/templates/badinput/move", "to: choose up or down", {"to": "garbage"},
            admin=True),
    _caps("E27", "Write a size with its unit", max_shared_memory="1"),
    _caps("E27", "This must be at most 64 TB", max_shared_memory="65t"),
    _form("E32", "key: use up to 255 printable characters", key="k\0"),
    _form("E32", "key: use up to 255 printable characters", key="k" * 200_000),
    _form("E37", "Variable é: use up to 128 letters", env='{"é": "x"}'),
    _form("E37", "Variable a b: use up to 128 letters", env='{"a b": "x"}'),
    _form("E46", "This must be at most 1024", gpu=str(10**9)),
    FormRow("E9", "/presets", "begin with a letter or a digit", FORM | {"preset": "-a"}),
]  # fmt: skip

SEVERAL_MECHANISMS = ("51", "E5", "E46")
"""The JSON parser, limits of size and types of numbers: each message has its own cause."""


def mechanism(row: Row | FormRow) -> tuple[str, str]:
    """The check that refuses a row: what the finding is about, at times with the message."""
    return row.id, row.words if row.id in SEVERAL_MECHANISMS else ""


ONE_ROW_EACH = first_of_each(ROWS, mechanism)
ONE_FORM_ROW_EACH = first_of_each(FORM_ROWS, mechanism)
