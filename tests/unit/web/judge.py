"""Properties of every response, whatever was sent: for the fuzzers and for known invalid inputs."""

from __future__ import annotations

import re
from typing import Any

from werkzeug.test import TestResponse

from tests.support.fakes import World
from tests.support.invalid_inputs import LIBRARY, MAX_ANSWER

PEOPLE = ("alice", "bob", "admin")


def state(world: World) -> Any:
    """Everything that a request could change; not the journal, which also records refusals."""
    rules, presets = world.services.administration, world.services.presets
    return (
        sorted((s.id, s.state, s.name) for s in world.store.live()),
        rules.templates(),
        rules.site_rules(),
        rules._store.image_rules(),
        [presets._store.all(name) for name in PEOPLE],
        sorted((job.id, job.state) for job in world.slurm.jobs),
        {user: sorted(names) for user, names in world.slurm.storage.items() if names},
    )


def response_json(answer: TestResponse) -> Any:
    """The response's JSON."""
    assert answer.json is not None
    return answer.json


def judge_api(answer: TestResponse, before: Any, world: World) -> None:
    """No server error; a refusal is short, names its field and has changed nothing."""
    assert answer.status_code < 500, answer.text
    if answer.status_code < 400:
        return
    assert len(answer.data) <= MAX_ANSWER
    assert not any(words in answer.text for words in LIBRARY), answer.text
    assert state(world) == before, answer.text
    assert response_json(answer)["detail"]
    assert not response_json(answer)["detail"].startswith((":", " "))
    if answer.status_code == 422:
        errors = response_json(answer)["errors"]
        assert 1 <= len(errors) <= 10
        assert all(error["field"] and error["message"] for error in errors), answer.text


def judge_page(answer: TestResponse, before: Any, world: World, largest: int) -> None:
    """The same for a page; `largest` is its maximum size in bytes."""
    assert answer.status_code < 500, answer.text
    if answer.status_code < 400:
        return
    assert len(answer.data) <= largest
    assert not any(words in answer.text for words in LIBRARY), answer.text
    assert state(world) == before, answer.text
    assert re.search(
        r'id="error-|role="alert"|class="field-error|class="problem|<h1', answer.text
    ) or (answer.mimetype == "text/plain")
