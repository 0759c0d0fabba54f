"""Invalid jobs to submit and job templates: rows as in tests/support/invalid_inputs.py.

Every field has values of wrong types, too long ones, NUL characters, line breaks and surrogates.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.support.invalid_inputs import FormRow, Row, first_of_each, mechanism

NAME = "badinput"
JOB: dict[str, Any] = {"script": "#!/bin/sh\nid\n", "name": NAME}
JOB_FORM = {"source": "editor", "script": "#!/bin/sh\r\nid\r\n", "name": NAME}
PUT = f"/job-templates/{NAME}"
NUL, LINES, HALF = "a\0b", "a\nb", "a\ud800"
"""Characters that no field but the script may have: HALF is no character of its own."""
TYPES: tuple[Any, ...] = (5, True, {}, {"a": 1})

VALUES: dict[str, tuple[Any, ...]] = {
    "script": (*TYPES, [], "", " \n", "id", "#!/bin/sh\0", "#!/bin/sh\n\ud800",
               "#!/bin/sh\r\nid\r\n", "#!" + "x" * 524_287, "#!/bin/sh\n#SBATCH --wrap=id\n"),
    "path": (*TYPES, [], "", "run.sh", "~", "/", "~bob/x", f"/{NUL}", f"/{LINES}", f"/{HALF}",
             "/" + "x" * 4095, "/" + "é" * 2048),
    "name": (*TYPES, [], "", " ", NUL, LINES, HALF, "x" * 201),
    "image": (*TYPES, [], "", "-x", "none", "python/9", NUL, LINES, HALF, "x" * 4096),
    "resource_group": (*TYPES, [], "", "none", NUL, LINES, HALF, "x" * 300),
    "time_limit": (True, {}, [], -1, 0, 10**30, 1.5, "", "soon", "90\n", "9" * 300, NUL, HALF),
    "directory": (*TYPES, [], "", "work", f"~/{NUL}", f"/{LINES}", f"/{HALF}", "/" + "x" * 4095),
    "array": (*TYPES, [], "", "0-", "1;id", "0-3\n", "\uff11", NUL, HALF, "1," * 250 + "1"),
    "args": (*TYPES, "a b", [5], [None], [[]], [NUL], [LINES], [HALF], ["x" * 8193], ["x"] * 101),
    "options": (*TYPES, "--hold", [5], [["--hold"]], [NUL], [f"--comment={LINES}"],
                [f"--comment={HALF}"], ["x.sh"], ["--"], ["--wrap=id"], ["--comment"],
                ["--comment=" + "x" * 8192], ["-H"] * 101),
    "mounts": (*TYPES, "data", [5], [NUL], [LINES], [HALF], ["a/b/c"], ["x" * 300], ["a", "a"],
               [{"folder": "a", "read_only": "x"}], [{"folder": "a", "x": 1}], ["a"] * 21),
    "resources": (5, True, [], "1", {"x": 1}),
    "resources.nodes": ("1", 1.5, True, 0, -1, 100_001, 10**30, [], {}),
    "resources.tasks": ("1", 1.5, True, 0, -1, 10_000_001, 10**30, [], {}),
    "resources.cpus": ("1", 1.5, True, 0, -1, 4097, 10**30, [], {}),
    "resources.memory": (*TYPES, [], "", "5", "1g\n", "0m", "65t", "9" * 300, NUL, HALF),
    "resources.shared_memory": (*TYPES, [], "", "5", "1g\n", "0m", "65t", NUL, HALF),
    "resources.fgpu": ("1", True, 0, -1, 10**9, [], {}),
    "resources.gpu_kind": (*TYPES, [], NUL, LINES, HALF, "x" * 300),
    "uid": (0,),
}  # fmt: skip
"""Values that each field refuses."""
SHARING: dict[str, tuple[Any, ...]] = {
    "shared": (*TYPES, [], "", "all", "site", NUL, HALF),
    "account": (*TYPES, [], "x" * 65),
}


def with_value(field: str, value: Any) -> dict[str, Any]:
    """A job with one field changed."""
    group, _, name = field.rpartition(".")
    if group:
        others = {"fgpu": 0.5} if name == "gpu_kind" else {}
        return JOB | {group: others | {name: value}}
    return {"name": NAME, field: value} if field == "path" else JOB | {field: value}


def _row(row: str, method: str, path: str, field: str, body: dict[str, Any]) -> Row:
    if "\\ud800" in json.dumps(body):  # no text at all, before any field is looked at
        return Row(row, method, path, 400, "", "not valid UTF-8", body)
    return Row(row, method, path, 422, field, "", body)


def _rows() -> Iterator[Row]:
    for number, (field, values) in enumerate(VALUES.items(), 1):
        for value in values:
            body = with_value(field, value)
            yield _row(f"J{number}", "POST", "/jobs", field, body)
            yield _row(f"J{number}", "PUT", PUT, field, body)
    for field, values in SHARING.items():
        for value in values:
            yield _row("J40", "PUT", PUT, field, JOB | {field: value})
    for value in ("yes", 1, [], {}):
        yield _row("J41", "POST", "/jobs", "test_only", JOB | {"test_only": value})


JOB_ROWS = [
    *_rows(),
    *(
        Row("J42", method, path, status, field, words, raw=raw)
        for method, path in (("POST", "/jobs"), ("PUT", PUT))
        for status, field, words, raw in (
            (422, "body", "", b"[]"),
            (422, "body", "", b"null"),
            (400, "", "not valid JSON", b"{{{garbage"),
            (400, "", "not valid UTF-8", b'{"script": "#!\xff"}'),
            (400, "", "key \\\"name\\\" twice", b'{"name": "a", "name": "b"}'),
        )
    ),
    Row("J43", "POST", "/jobs", 422, "script", "a script, or the path of one", json={"name": NAME}),
    Row("J43", "POST", "/jobs", 422, "path", "either a script or the path", JOB | {"path": "/x"}),
    Row("J44", "POST", "/jobs", 422, "Idempotency-Key", "255", JOB,
        headers={"Idempotency-Key": "k" * 256}),
    *(
        Row("J45", "PUT", f"/job-templates/{name}", 422, "template", "letter or a digit", JOB)
        for name in ("-a", "_a", "%20a", "a%20", "%C3%A9")
    ),
]  # fmt: skip


def is_named(row: Row, named: list[str]) -> bool:
    """Whether the errors name the row's field, or an element of it, and no other field."""
    return bool(named) and all(one == row.field or one.startswith(f"{row.field}.") for one in named)


GROUPS = [(name, list(rows)) for name, rows in itertools.groupby(JOB_ROWS, key=lambda row: row.id)]
"""The rows by id, since they are many."""
FEWER_GROUPS = [
    (name, first_of_each(rows, lambda row: (row.method, row.status))) for name, rows in GROUPS
]
"""For each field, a value that it refuses and text that no request may have, by both addresses."""


def _form(row: str, words: str, **changes: str) -> FormRow:
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return FormRow(row, "/jobs/new", words, JOB_FORM | named)


JOB_FORM_ROWS = [
    _form("J50", "A script cannot contain NUL characters", script="#!/bin/sh\0"),
    _form("J50", "Use up to 512 KB; this has 513 KB", script="#!" + "x" * 524_287),
    _form("J50", "Begin the first line with #!", script="id"),
    _form("J51", "Use up to 4095 printable characters", source="file", path="/a\0"),
    _form("J51", "Begin with / or", source="file", path="run.sh"),
    _form("J52", "Use 1 to 200 printable characters", name="a\0"),
    _form("J53", "A quotation mark or backslash is not closed", args="'"),
    _form("J53", "Use printable characters, in one line", args="a 'b\nc'"),
    _form("J53", "These are too many; there may be 100", args="x " * 101),
    _form("J54", "Use printable characters, in one line", options="--comment='b\nc'"),
    _form("J54", "--wrap is not possible here", options="--wrap id"),
    _form("J55", "This must be at most 4096", resources__cpus="9" * 5000),
    _form("J55", "Write a size with its unit", resources__memory="1G\n#SBATCH"),
    _form("J56", "Write task numbers", array="1;id"),
    _form("J57", "key: use up to 255 printable characters", key="k\0"),
    FormRow("J58", "/jobs/templates", "begin with a letter or a digit",
            JOB_FORM | {"template": "-a"}),
    FormRow("J58", "/jobs/templates", "Choose with whom to share",
            JOB_FORM | {"template": "a", "shared": "all"}),
]  # fmt: skip
ONE_JOB_FORM_ROW_EACH = first_of_each(JOB_FORM_ROWS, mechanism)
