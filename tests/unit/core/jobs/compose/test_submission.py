"""What can be asked for: wrong fields are named."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.jobs.compose.submission import MAX_SCRIPT, parse_job, to_body
from portal.errors import InvalidRequest
from tests.support.submissions import ALL_FIELDS, SCRIPT


def test_a_complete_request_survives_being_kept() -> None:
    assert to_body(parse_job(to_body(parse_job(ALL_FIELDS)))) == ALL_FIELDS


def test_only_a_script_or_its_path_is_needed() -> None:
    assert to_body(parse_job({"script": SCRIPT})) == {"script": SCRIPT}
    assert to_body(parse_job({"path": "~/run.sh"})) == {"path": "~/run.sh"}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"script": " \n"}, "script", "this must not be empty"),
        ({"script": "echo"}, "script", "begin the first line with #!"),
        ({"script": "\ufeff#!/bin/sh\n"}, "script", "a byte-order mark (BOM)"),
        ({"script": "#!/bin/sh\r\nid\r\n"}, "script", "lines end as in DOS"),
        ({"script": "#!/bin/sh\0"}, "script", "a script cannot contain NUL"),
        ({"script": "#!/bin/sh \ud800"}, "script", "cannot be written as UTF-8"),
        ({"script": "#!" + "é" * (MAX_SCRIPT // 2)}, "script", "use up to 512 KB; this has 513"),
        ({"script": "#!/bin/sh\n#SBATCH --wait\n"}, "script", "line 2: --wait is not possible"),
        ({"script": None}, "script", "this is needed: a script, or the path of one"),
        ({"path": "/x"}, "path", "send either a script or the path of one"),
        ({"script": None, "path": "run.sh"}, "path", "begin with / or"),
        ({"script": None, "path": "/home/alice/"}, "path", "name a file"),
        ({"script": None, "path": "/a\nb"}, "path", "printable characters"),
        ({"name": " "}, "name", "use 1 to 200 printable"),
        ({"name": "a\nb"}, "name", "use 1 to 200 printable"),
        ({"image": "--uid=0"}, "image", "write NAME, NAME/VERSION"),
        ({"resources": {"cpus": 0}}, "resources.cpus", "this must be at least 1"),
        ({"resources": {"memory": "5"}}, "resources.memory", "write a size with its unit"),
        ({"resources": {"fgpu": -1}}, "resources.fgpu", "write an amount above 0"),
        ({"resources": {"gpu_kind": "x"}}, "resources.gpu_kind", "also set how much"),
        ({"time_limit": "soon"}, "time_limit", "write a time"),
        ({"mounts": ["a", "a"]}, "mounts", "the folder a is named twice"),
        ({"directory": "work"}, "directory", "begin with / or"),
        ({"array": "0-"}, "array", "write task numbers"),
        ({"array": "1;id"}, "array", "write task numbers"),
        ({"options": ["run.sh"]}, "options", "run.sh is not an option"),
        ({"options": "--hold"}, "options", "this must be a list"),
        ({"options": ["-H"] * 101}, "options", "these are too many; there may be 100"),
        ({"args": "a b"}, "args", "this must be a list"),
        ({"args": [1]}, "args.0", "this must be text"),
        ({"args": ["a\nb"]}, "args", "use printable characters, in one line"),
        ({"args": ["a\0"]}, "args", "use printable characters, in one line"),
        ({"args": ["\ud800"]}, "args", "use printable characters, in one line"),
        ({"args": ["x" * 8193]}, "args", "use up to 100 words with 8,192 characters"),
        ({"args": ["x"] * 101}, "args", "these are too many; there may be 100"),
        ({"user": "bob"}, "user", "there is no such field"),
    ],
)
def test_bad_input_names_its_field(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_job({"script": SCRIPT} | changes)
    assert [error.field for error in caught.value.errors] == [field]
    assert message in caught.value.errors[0].message


def test_no_object_is_no_job() -> None:
    with pytest.raises(InvalidRequest, match="send an object with the fields of a job"):
        parse_job([SCRIPT])


@pytest.mark.parametrize(
    ("field", "value", "options"),
    [
        ("account", "research", ["--account=crystals"]),
        ("account", "research", ["-A", "crystals"]),
        ("account", "research", ["--acc=crystals"]),
        ("qos", "urgent", ["-Hqspare"]),
        ("reservation", "course", ["--reservation", "other"]),
        ("constraint", "ssd", ["-Cssd"]),
    ],
)
def test_an_option_with_a_field_of_its_own_is_given_once(
    field: str, value: str, options: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_job({"script": SCRIPT, field: value, "options": options})
    assert [error.field for error in refused.value.errors] == ["options"]
    assert f"--{field} has a field of its own" in refused.value.errors[0].message
    assert parse_job({"script": SCRIPT, "options": options}).options
    assert parse_job({"script": SCRIPT, field: value, "options": ["--comment=A"]}).options
