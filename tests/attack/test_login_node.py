"""The login node's sshd, when the portal's user CA is stolen."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster

PLACE = "/run/stolen"
PEOPLE = ("alice", "bob", "admin")
PORTALS = ("slipway", "slipway-operator")
SYSTEM = ("munge", "nobody", "sshd", "slurm", "daemon", "root")

# From the portal's machine and address, with its own SSH client.
ATTEMPT = """
import sys, paramiko
user, place = sys.argv[1:]
key = paramiko.Ed25519Key.from_private_key_file(place)
key.load_certificate(place + "-cert.pub")
transport = paramiko.Transport(("login", 22))
transport.start_client(timeout=20)
try:
    transport.auth_publickey(user, key)
    print("let in")
except paramiko.AuthenticationException:
    print("refused")
transport.close()
"""


class Thief:
    """Somebody with a copy of the portal's user CA."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def certificate(self, user: str) -> str:
        """A certificate for a user, valid for an hour from any address; the path of its key."""
        key = f"{PLACE}/{user}-{uuid.uuid4().hex[:8]}"
        make = f"ssh-keygen -q -t ed25519 -N '' -f {key} && "
        make += f"ssh-keygen -q -s {PLACE}/ca -I stolen -n {user} -V -5m:+1h {key}.pub"
        self.cluster.shell("login", make)
        for file in (key, f"{key}-cert.pub"):
            put(self.cluster, "portal", file, self.cluster.run("login", "cat", file))
        return key

    def from_elsewhere(self, user: str, key: str = "") -> str:
        """Log in from an address other than the portal's."""
        key = key or self.certificate(user)
        options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"]
        options += ["IdentitiesOnly=yes", "PreferredAuthentications=publickey"]
        words = [word for option in options for word in ("-o", option)]
        argv = ["ssh", "-v", "-F", "none", "-i", key, *words, f"{user}@login", "id -un"]
        output = self.cluster.attempt("exec", "login", "--", *argv).stderr
        assert "Connection established" in output, output
        return "let in" if "Authenticated to login" in output else "refused"

    def from_the_portal(self, user: str, key: str = "") -> str:
        """Log in from the portal's address."""
        words = ["/opt/venv/bin/python", "-c", ATTEMPT, user, key or self.certificate(user)]
        return self.cluster.run("portal", *words).strip()


def put(cluster: Cluster, machine: str, file: str, text: str) -> None:
    """Write a file that only root can read."""
    write = ["exec", machine, "--", "sh", "-c", f"umask 077; cat > {file}"]
    assert cluster.attempt(*write, stdin=text).returncode == 0


@pytest.fixture(scope="module")
def thief(cluster: Cluster) -> Iterator[Thief]:
    """A thief on the login node, where ssh-keygen is installed."""
    for machine in ("login", "portal"):
        cluster.shell(machine, f"install -d -m 700 {PLACE}")
    put(
        cluster, "login", f"{PLACE}/ca", cluster.run("portal", "cat", "/var/lib/slipway/ca/user_ca")
    )
    yield Thief(cluster)
    for machine in ("login", "portal"):
        cluster.run(machine, "rm", "-rf", PLACE)


@pytest.mark.parametrize("user", [*PEOPLE, *PORTALS, *SYSTEM])
def test_certificates_are_refused_from_other_addresses(thief: Thief, user: str) -> None:
    """L7: alice, admin, slipway and slipway-operator could run commands from anywhere."""
    assert thief.from_elsewhere(user) == "refused"


@pytest.mark.parametrize("user", SYSTEM)
def test_certificates_are_refused_for_system_accounts(thief: Thief, user: str) -> None:
    """L7: munge and nobody passed authentication, also from the portal's own address."""
    assert thief.from_the_portal(user) == "refused"


@pytest.mark.parametrize("user", [*PEOPLE, *PORTALS])
def test_the_portal_itself_can_log_in(thief: Thief, user: str) -> None:
    """The same commands from the portal's address: the refusals above have no other reason."""
    assert thief.from_the_portal(user) == "let in"


def test_a_revoked_key_is_refused_everywhere(cluster: Cluster, thief: Thief) -> None:
    """L7: there was no revocation list."""
    key, other = thief.certificate("alice"), thief.certificate("alice")
    assert thief.from_the_portal("alice", key) == "let in"
    revoked = "/etc/ssh/keys/revoked"
    before = cluster.run("login", "cat", revoked)
    try:
        cluster.shell("login", f"cat {key}.pub >> {revoked}")
        assert thief.from_the_portal("alice", key) == "refused"
        assert thief.from_the_portal("alice", other) == "let in"
    finally:
        cluster.shell("login", f"cat > {revoked} <<'END'\n{before}END\n")
