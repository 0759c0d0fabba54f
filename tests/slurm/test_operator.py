"""The account that may extend sessions: usable by the portal's certificates, not by a password."""

from __future__ import annotations

from tests.support.client import Api
from tests.support.cluster import Cluster

OPERATOR = "slipway-operator"
AS_SOMEBODY = """
import sys
from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.transport import SshTransport
from portal.config import load_settings

settings = load_settings()
transport = SshTransport(settings.login, CertificateAuthority(settings.state.ca_file("")))
done = transport.run(sys.argv[1], sys.argv[2:])
sys.stdout.write(done.stderr)
sys.stdout.flush()
sys.exit(done.code)
"""


def as_portal(cluster: Cluster, user: str, *argv: str) -> tuple[int, str]:
    """Run a command on the login node as the portal does: exit status and error output."""
    portal = ["setpriv", "--reuid=slipway", "--regid=slipway", "--clear-groups"]
    words = ["exec", "portal", "--", *portal, "python", "-c", AS_SOMEBODY, user, *argv]
    done = cluster.attempt(*words)
    return done.returncode, done.stdout + done.stderr


def limit(cluster: Cluster, job: str) -> str:
    """A job's time limit as Slurm shows it."""
    return cluster.run("login", "squeue", "--noheader", f"--jobs={job}", "--format=%l").strip()


def test_only_the_operator_can_extend_a_job(alice: Api, cluster: Cluster) -> None:
    job = alice.running(time_limit=20)["job_id"]
    longer = ["scontrol", "update", f"JobId={job}", "TimeLimit=+10"]
    assert limit(cluster, job) == "20:00"
    code, text = as_portal(cluster, "alice", *longer)
    assert code != 0
    assert "denied" in text
    assert limit(cluster, job) == "20:00"
    assert as_portal(cluster, OPERATOR, *longer) == (0, "")
    assert limit(cluster, job) == "30:00"


def test_nobody_launches_or_logs_in_as_the_operator(cluster: Cluster) -> None:
    code, text = as_portal(cluster, OPERATOR, "sbatch", "--wrap=true", "--output=/dev/null")
    assert code != 0, text
    shadow = cluster.run("login", "getent", "shadow", OPERATOR).split(":")
    assert shadow[1].startswith("!"), "it has a password"
    body = {"username": OPERATOR, "password": "!"}
    assert Api(cluster, OPERATOR)("POST", "/tokens", json=body).status_code == 401
