"""A cluster account that a test may lock and remove."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.client import Api, http_session
from tests.support.cluster import Cluster

MACHINES = ("login", "ctl", "n1", "n2")


@dataclass
class Account:
    """An account used by one test only; it exists on these machines."""

    cluster: Cluster
    name: str
    password: str
    uid: int

    def add(self, *machines: str) -> None:
        """Create it, with its home on the login node."""
        for machine in machines:
            self.cluster.shell(
                machine,
                f"id {self.name} 2>/dev/null || useradd --uid {self.uid} --user-group "
                f"--no-create-home --home-dir /home/{self.name} --shell /bin/bash {self.name}",
            )
        # The login node admits no other accounts (AllowGroups).
        self.cluster.run("login", "usermod", "--append", "--groups", "people", self.name)
        self.cluster.run("login", "chpasswd", stdin=f"{self.name}:{self.password}\n")
        self.cluster.shell(
            "login",
            f"mkdir -p /home/{self.name} && chown {self.uid}:{self.uid} /home/{self.name} && "
            f"chmod 700 /home/{self.name}",
        )

    def login(self, *command: str) -> None:
        """Run a command as root on the login node, such as usermod."""
        self.cluster.run("login", *command, self.name)

    def token(self) -> str:
        """Log in with the password."""
        body = {"username": self.name, "password": self.password}
        token: str = Api(self.cluster, self.name).ask("POST", "/tokens", 201, json=body)["token"]
        return token

    def remove(self) -> None:
        """Remove all traces of it."""
        for machine in MACHINES:
            self.cluster.shell(machine, f"pkill -KILL -u {self.uid}; userdel -f {self.name}; true")
        self.cluster.shell("login", f"rm -rf /home/{self.name} /tmp/slipway-{self.uid}")


@contextmanager
def throwaway(cluster: Cluster, *machines: str) -> Iterator[Account]:
    """An account for one test, on these machines."""
    number = secrets.randbelow(40_000)  # several may exist at once
    found = Account(cluster, f"ghost{number}", secrets.token_urlsafe(12), 5000 + number)
    try:
        found.add(*machines)
        yield found
    finally:
        found.remove()


def anonymous(cluster: Cluster) -> Api:
    """An API client without a token."""
    api = Api(cluster, "")
    api.http = http_session()
    return api
