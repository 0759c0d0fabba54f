"""The API against its own OpenAPI document: no request causes an unexpected response.

schemathesis reads the document and creates valid and invalid requests from it; a new operation is
covered from the first day. Known names are added to the document first, since random ones would
only get 404.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.core.cluster.job_reports import JobState
from portal.core.session.session import OVER, Cause, Session, State
from portal.web.api.openapi import document
from tests.support.fakes import PASSWORDS, World, make_world
from tests.support.stored_jobs import array, job, store_jobs
from tests.unit.web.conftest import PORTAL, Api, make_settings, with_gpus

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
IDS = {state: f"{number:032x}" for number, state in enumerate(State)}
"""One session of alice's in every state."""


def _known(*values: object) -> dict[str, Any]:
    return {"enum": list(values)}


KNOWN_PATHS = {
    "session_id": _known(*IDS.values(), "f" * 32),
    "app": _known("terminal", "notebook", "nothing"),
    "job_id": _known(*(str(number) for number in range(1, 15)), "100", "100_0", "100_[2-9]", "x"),
}


def strict(schema: Any) -> Any:
    """The same schema for responses, with every field described."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return closed | {key: strict(part) for key, part in schema.items()}


def answers(spec: dict[str, Any]) -> set[str]:
    """The components used in responses."""
    schemas = spec["components"]["schemas"]
    found: set[str] = set()
    paths = spec["paths"].values()
    new = _named([o["responses"] for path in paths for o in path.values() if "responses" in o])
    new |= _named(spec["components"]["responses"])
    while new:
        found |= new
        new = _named([schemas[name] for name in new]) - found
    return found


def _named(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_named, schema))
    if not isinstance(schema, dict):
        return set()
    reference = schema.get("$ref", "")
    of_schema = isinstance(reference, str) and "/schemas/" in reference
    inside = set().union(*map(_named, schema.values())) if schema else set()
    return inside | ({reference.rpartition("/")[2]} if of_schema else set())


def informed(plain: dict[str, Any]) -> dict[str, Any]:
    """The document with the ids of existing sessions and environments."""
    spec = deepcopy(plain)
    schemas = spec["components"]["schemas"]
    schemas |= {name: strict(schemas[name]) for name in answers(spec)}
    schemas["LaunchRequest"]["properties"] |= {
        "environment": _known("python"),
        "version": _known("3.13", "3.12", "1.0", None),
        "resource_group": _known("main", "elsewhere", None),
    }
    schemas["Resources"]["properties"] |= {
        "cpus": _known(1, 2, 400),
        "memory": _known("600m", "1g", "5t"),
        "shared_memory": _known("64m", "1g", None),
        "fgpu": _known(0.5, 0.7, 4, 0, None),
        "gpu_kind": _known("demo", "other", "", None),
    }
    schemas["TokenRequest"]["properties"] |= {
        "username": _known(*PASSWORDS, "nobody", None),
        "password": _known(*PASSWORDS.values(), "", None),
    }
    for path in spec["paths"].values():
        for parameter in path.get("parameters", []):
            parameter["schema"] = KNOWN_PATHS.get(parameter["name"], parameter["schema"])
    return spec


API = schemathesis.openapi.from_dict(informed(document(PORTAL)))


def _session(state: State) -> Session:
    live = state in (State.RUNNING, State.ENDING)
    over = state in OVER
    return Session(
        id=IDS[state],
        name=f"session{state}",
        owner="alice",
        environment="python",
        version="3.13",
        cpus=1,
        memory_mb=600,
        partition="main",
        state=state,
        created=NOON - timedelta(hours=1),
        submitted=NOON - timedelta(hours=1),
        token_hash="0" * 64,
        job_id=None if state is State.SUBMITTING else "4711",
        node="n1" if live else None,
        address="10.0.0.1" if live else None,
        port=40123 if live else None,
        started=NOON - timedelta(minutes=50) if live or over else None,
        ready=NOON - timedelta(minutes=49) if live else None,
        pending_reason="Priority" if state is State.PENDING else None,
        ended=NOON if over else None,
        cause=Cause.OUT_OF_MEMORY if state is State.FAILED else Cause.FINISHED if over else None,
        end_text="It ended." if over else None,
        exit_code=0 if over else None,
        usage_at=NOON if live else None,
        cpu_percent=12.5 if live else None,
        memory_used=2**20 if live else None,
        fgpu=0.5 if live else None,
        gpu_kind="demo" if live else "",
        gres="shard:demo:1" if live else "",
        gpu_memory_mb=2048 if live else None,
        gpu_sm_percent=25 if live else None,
        gpu_memory_used=2**33 if live else None,
        gpu_percent=12.5 if live else None,
    )


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with a GPU to share."""
    return make_world(with_gpus(make_settings(tmp_path)))


@pytest.fixture
def populated(world: World) -> World:
    """A portal that knows its cluster, with a session in every state."""
    world.slurm.gres = {"n1": "gpu:demo:1,shard:demo:4"}
    reconciler = world.worker
    reconciler.read_partitions()
    reconciler.read_limits()
    assert reconciler.poll()
    for state in State:
        world.store.add([_session(state)], None, "", {})
    now = world.clock()
    store_jobs(
        world,
        *(job(number, now, state=state) for number, state in enumerate(JobState, 1)),
        *array(100, now, 2, "2-9"),
    )
    world.slurm.log = b"first line\n\xff second\n"
    return world


GENERATED = settings(
    max_examples=8,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def check_answer(case: schemathesis.Case[Any], app: Flask, token: str) -> None:
    """Send a generated request; its answer is one that the document describes."""
    # schemathesis does not quote "?" in lists, and all parameters are strings in a path anyway.
    assume(not any(isinstance(it, (list, dict)) for it in (case.path_parameters or {}).values()))
    response = case.call(app=app, headers={"Authorization": f"Bearer {token}"})
    # 413 is a refusal too, which schemathesis does not count as one; 421 comes from before the API,
    # for a Host that is not the portal's.
    assume(response.status_code not in (413, 421))
    # An invalid query may be read leniently (a number as a time); an invalid body never is.
    # The names in a preset need not exist now.
    bound = case.operation.body and case.operation.path != "/presets/{name}"
    more = [negative_data_rejection] if bound else []
    case.validate_response(response, checks=[*CHECKS, *more])


@API.parametrize()
@GENERATED
def test_every_operation_conforms_to_the_document(
    case: schemathesis.Case[Any], app: Flask, populated: World, api: Callable[[str], Api]
) -> None:
    check_answer(case, app, api("alice").token)


@API.include(path_regex="^/admin/").parametrize()
@GENERATED
def test_every_operation_of_administrators_conforms_to_the_document(
    case: schemathesis.Case[Any], app: Flask, populated: World, api: Callable[[str], Api]
) -> None:
    check_answer(case, app, api("admin").token)
