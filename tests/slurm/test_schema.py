"""The running portal against its own OpenAPI document: HAProxy, gunicorn, SSH and Slurm included.

tests/unit/web/api/test_openapi.py tries far more; this covers what fakes cannot show, with a few
requests of each kind. What it launches is ended at once.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.support.client import Api
from tests.support.cluster import Cluster

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
SAFE = settings(
    max_examples=2,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _restricted(spec: dict[str, Any], session: str) -> dict[str, Any]:
    """The document restricted to one session and to small launches."""
    schemas = spec["components"]["schemas"]
    schemas["LaunchRequest"]["properties"] |= {
        "environment": {"enum": ["python"]},
        "version": {"enum": [None, "9.9"]},
        "count": {"enum": [1, 2, 21]},
    }
    schemas["Resources"]["properties"] |= {
        "cpus": {"enum": [1, 99]},
        "memory": {"enum": ["300m"]},
        "shared_memory": {"enum": ["64m", None]},
    }
    known = {"session_id": {"enum": [session, "0" * 32]}, "app": {"enum": ["terminal", "none"]}}
    for path in spec["paths"].values():
        for parameter in path.get("parameters", []):
            parameter["schema"] = known.get(parameter["name"], parameter["schema"])
    return spec


def test_the_running_portal_conforms_to_its_document(alice: Api, cluster: Cluster) -> None:
    session = alice.launch(resources={"cpus": 1, "memory": "300m"})["id"]
    api = schemathesis.openapi.from_dict(_restricted(alice.ask("GET", "/openapi.json"), session))
    statuses = Counter[int]()

    @SAFE
    @given(data=st.data())
    def try_it(data: st.DataObject, operation: Any, mode: GenerationMode) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        answer = case.call(
            base_url=f"{cluster.url}/api/v1",
            session=alice.http,
            timeout=60,
            verify=alice.http.verify,
        )
        statuses[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    try:
        # Logins are omitted: an address may try only a few passwords per minute.
        for found in api.exclude(path="/tokens").get_all_operations():
            assert isinstance(found, Ok)
            try_it(operation=found.ok(), mode=GenerationMode.POSITIVE)
            with suppress(Unsatisfiable):  # a request without data cannot be invalid
                try_it(operation=found.ok(), mode=GenerationMode.NEGATIVE)
    finally:
        alice.launched += [other["id"] for other in alice.list(state="running")]
    print(dict(statuses))
    assert statuses[200] > 10
    assert statuses[201] >= 1, "nothing was launched"
