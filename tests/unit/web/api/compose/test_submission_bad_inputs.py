"""Invalid jobs and templates are refused with the field, and nothing is submitted or saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask

from tests.support.fakes import World
from tests.support.invalid_inputs import LIBRARY, MAX_ANSWER, FormRow, Row
from tests.support.invalid_jobs import GROUPS, JOB_FORM_ROWS, is_named
from tests.unit.web.conftest import Api, Browser
from tests.unit.web.judge import response_json

Client = Callable[[str], Api]
COMMON_SIZE = 150_000
"""Bytes of the composer's page without a script."""


def nothing_changed(world: World) -> bool:
    """Whether no job was submitted and no template saved."""
    saved = world.systems.stores.job_templates.visible("alice", frozenset())
    return world.slurm.submitted == [] and saved == []


@pytest.mark.parametrize(("name", "rows"), GROUPS, ids=[name for name, _ in GROUPS])
def test_api_rows(name: str, rows: list[Row], api: Client, world: World) -> None:
    world.worker.read_partitions()
    for row in rows:
        answer = api("alice")(
            row.method,
            row.path,
            data=row.body,
            content_type="application/json",
            headers=row.headers,
        )
        assert answer.status_code == row.status, (row, answer.text)
        assert row.words in answer.text, row
        assert not any(words in answer.text for words in LIBRARY), answer.text
        assert len(answer.data) <= MAX_ANSWER
        if row.field:
            assert is_named(row, [error["field"] for error in response_json(answer)["errors"]])
        assert nothing_changed(world), row


@pytest.mark.parametrize("row", JOB_FORM_ROWS, ids=str)
def test_form_rows(row: FormRow, app: Flask, world: World) -> None:
    world.worker.read_partitions()
    answer = Browser(app).log_in("alice").post(row.path, dict(row.data))
    assert answer.status_code == row.status, answer.text
    assert row.words in answer.text
    assert not any(words in answer.text for words in LIBRARY)
    assert len(answer.data) <= COMMON_SIZE
    assert nothing_changed(world)
