"""A runner lies: about its session, job, node, usage, and the name in its certificate.

Rows "Call-backs" and "CSR" of what was attacked and found solid. All requests are sent from inside
the cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from portal.node.runner.wire import RUNNER
from tests.slurm.conftest import MakeApi
from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for

# The token is passed first, in a file, since arguments are public.
CURL = 'umask 077; IFS= read -r token; echo "$token" > .callback-token; '
CURL += 'curl -sk --max-time 20 -X POST -H "$(cat .callback-token)" '
CURL += f"-H '{RUNNER}' -H 'Content-Type: application/json' "
CURL += "-w '\\n%{http_code}' --data-binary @- "
BEAT: Json = {"cpu_seconds": 1.0, "memory_bytes": 1}


@dataclass
class Runner:
    """Bob, with the token of his own session's runner."""

    cluster: Cluster
    api: Api
    session: Json
    token: str

    def send(self, path: str, body: str, token: str | None = None) -> tuple[int, str]:
        """A callback's status and response."""
        header = f"Authorization: Bearer {self.token if token is None else token}\n"
        command = f"{CURL} 'https://portal:8443/runner/v1/sessions/{path}'"
        output = self.cluster.run("login", "sh", "-c", command, user="bob", stdin=header + body)
        text, _, status = output.rpartition("\n")
        return int(status), text

    def report(self, what: str, body: Any) -> tuple[int, str]:
        """A callback of his own session."""
        return self.send(
            f"{self.session['id']}/{what}", body if isinstance(body, str) else json.dumps(body)
        )


@pytest.fixture(scope="module")
def runner(make_api: MakeApi, cluster: Cluster) -> Iterator[Runner]:
    """His running session; its token was read while the session was pending."""
    api = make_api("bob")
    cluster.run("login", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        session = api.launch()
        wait_for("the job in the queue", lambda: session["id"] in cluster.queue("bob"))
        spec = f"/home/bob/.slipway/sessions/{session['id']}/spec.json"
        token = json.loads(cluster.run("login", "cat", spec, user="bob"))["token"]
    finally:
        cluster.run("login", "scontrol", "update", "PartitionName=main", "State=UP")
    running = api.wait_state(session["id"], "RUNNING")
    yield Runner(cluster, api, running, token)
    api.clean()
    cluster.run("login", "rm", "-f", ".callback-token", user="bob")


def _csr(*names: str, common: str = "") -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternative, critical=False)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return pem.decode()


def _ready(runner: Runner, **changes: Any) -> Json:
    return {
        "job_id": runner.session["job_id"],
        "node": runner.session["node"],
        "port": 40000,
        "csr": _csr(),
    } | changes


@pytest.fixture(autouse=True)
def _not_too_often() -> Iterator[None]:
    """Callbacks may be limited to one per second and session."""
    yield
    time.sleep(1.1)


def test_the_token_is_valid(runner: Runner) -> None:
    """A precondition of the other tests here."""
    assert runner.report("usage", BEAT)[0] == 200


@pytest.mark.parametrize("what", ["ready", "usage", "apps/jupyterlab"])
def test_callbacks_for_another_session_are_refused(
    runner: Runner, session: Json, what: str
) -> None:
    body = {"ready": _ready(runner), "usage": BEAT}.get(what, {"state": "failed", "message": "x"})
    for other in (session["id"], "0" * 32):
        assert runner.send(f"{other}/{what}", json.dumps(body))[0] in (401, 404)
    for token in ("", "x", runner.token[:-1], runner.token + "x", runner.token.upper()):
        status, _ = runner.send(f"{runner.session['id']}/{what}", json.dumps(body), token)
        assert status == 401, token


LIES: dict[str, Json] = {
    "alice's job": {"job_id": "ALICES"},
    "a job that is not there": {"job_id": "999999"},
    "job 0": {"job_id": "0"},
    "another node": {"node": "OTHER"},
    "the portal": {"node": "portal"},
    "the login node": {"node": "login"},
    "this machine": {"node": "localhost"},
    "an address": {"node": "127.0.0.1"},
    "a node with a line break": {"node": "n1\nadd map"},
    "a node with a semicolon": {"node": "n1;shutdown"},
    "port 0": {"port": 0},
    "port 65536": {"port": 65536},
    "a port that is a word": {"port": "22; x"},
    "no signing request": {"csr": ""},
    "a broken signing request": {"csr": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA"},
}


@pytest.mark.parametrize("case", LIES)
def test_false_job_node_or_port_is_refused(runner: Runner, session: Json, case: str) -> None:
    other = "n2" if runner.session["node"] == "n1" else "n1"
    known = {"ALICES": session["job_id"], "OTHER": other}
    lie = {key: known.get(str(value), value) for key, value in LIES[case].items()}
    status, text = runner.report("ready", _ready(runner, **lie))
    assert status in (400, 401, 403, 404, 409, 410, 413, 422), (status, text)
    assert "BEGIN CERTIFICATE" not in text
    assert runner.api.get(runner.session["id"])["node"] == runner.session["node"]


def test_a_certificate_names_its_own_session_whatever_the_request(
    runner: Runner, session: Json
) -> None:
    hers = f"jupyterlab.{session['id']}.slipway"
    pem = _csr("portal", "*.slipway", hers, "localhost", common="portal")
    status, text = runner.report("ready", _ready(runner, csr=pem))
    if status != 200:  # a refusal is right, too
        assert status in (400, 422), text
        return
    certificate = x509.load_pem_x509_certificate(json.loads(text)["certificate"].encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    for name in names.get_values_for_type(x509.DNSName):
        assert name.endswith(f"{runner.session['id']}.slipway"), name
    assert not certificate.subject.rdns or session["id"] not in certificate.subject.rfc4514_string()
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    constraints = certificate.extensions.get_extension_for_oid(ExtensionOID.BASIC_CONSTRAINTS).value
    assert isinstance(constraints, x509.BasicConstraints)
    assert not constraints.ca


BODIES = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "null": "null",
    "NaN": '{"cpu_seconds": NaN, "memory_bytes": 1}',
    "Infinity": '{"cpu_seconds": Infinity, "memory_bytes": 1}',
    "a number without end": '{"cpu_seconds": 1e999, "memory_bytes": 1}',
    "a negative number": '{"cpu_seconds": -1, "memory_bytes": 1}',
    "too many bytes": '{"cpu_seconds": 1, "memory_bytes": 9223372036854775808}',
    "a number of 5000 digits": '{"cpu_seconds": 1, "memory_bytes": ' + "9" * 5000 + "}",
    "a word": '{"cpu_seconds": "1", "memory_bytes": 1}',
    "what nobody asked for": '{"cpu_seconds": 1, "memory_bytes": 1, "owner": "alice"}',
    "deep": '{"cpu_seconds": ' + "[" * 20_000 + "]" * 20_000 + "}",
    "an app of another": '{"cpu_seconds": 1, "memory_bytes": 1, "apps": {"../x": "ready"}}',
    "a megabyte": '{"cpu_seconds": 1, "memory_bytes": 1, "apps": "' + "x" * 1_000_000 + '"}',
    "three megabytes": '{"cpu_seconds": 1, "memory_bytes": 1, "apps": "' + "x" * 3_000_000 + '"}',
}


@pytest.mark.parametrize("case", BODIES)
def test_an_invalid_body_is_refused_with_an_explanation(runner: Runner, case: str) -> None:
    status, text = runner.report("usage", BODIES[case])
    assert status in (400, 413, 415, 422), (status, text[:300])
    assert "Traceback" not in text
    assert runner.api.get(runner.session["id"])["state"] == "RUNNING"


FORGOTTEN = ("apps/jupyterlab%00", "apps/nothing")


@pytest.mark.parametrize(
    "path",
    [
        "apps/..%2f..%2fready",
        "apps/../../{hers}/ready",
        "apps/%2e%2e/usage",
        "apps/jupyterlab%00",
        "apps/nothing",
        "apps/",
        "../../../login",
        "../../../api/v1/sessions",
        "../../../healthz",
    ],
)
def test_no_path_escapes_the_runners_routes(
    runner: Runner, session: Json, researcher: Api, path: str
) -> None:
    before = [app["state"] for app in researcher.get(session["id"])["apps"]]
    full = f"{runner.session['id']}/{path.format(hers=session['id'])}"
    status, text = runner.send(full, json.dumps({"state": "failed", "message": "x"}))
    # A report about an unknown app of the own session may be accepted and ignored.
    allowed = (200,) if path in FORGOTTEN else ()
    assert status in (400, 401, 404, 405, 409, 410, 422, *allowed), (status, text[:200])
    assert text.strip() == "{}" or status != 200
    assert [app["state"] for app in researcher.get(session["id"])["apps"]] == before


def test_the_token_ends_with_the_session(runner: Runner) -> None:
    """The last test of this file, since it ends the session that the others use."""
    runner.api.stop(runner.session["id"])
    runner.api.wait_state(runner.session["id"], *OVER)
    for what, body in (
        ("usage", BEAT),
        ("ready", _ready(runner)),
        ("apps/jupyterlab", {"state": "ready"}),
    ):
        status, _ = runner.report(what, body)
        assert status in (401, 404, 409, 410), (what, status)
