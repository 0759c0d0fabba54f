"""What `slipway check` says about groups of administrators."""

from __future__ import annotations

from collections.abc import Sequence

from portal.adapters.ssh.transport import Completed
from portal.cli.checks.connection import check_admin_groups
from portal.errors import Unavailable


class Groups:
    """A login node with one group."""

    def __init__(self, silent: bool = False) -> None:
        self.silent = silent

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """getent group."""
        assert (user, list(argv[:3])) == ("slipway", ["getent", "group", "--"])
        if self.silent:
            raise Unavailable("The login node does not answer.")
        return Completed(0 if argv[3] == "hpc-staff" else 2, b"", "")


def test_a_group_that_does_not_exist_is_named() -> None:
    found = list(check_admin_groups(["hpc-staff", "hpc-staf"], "slipway", Groups()))
    assert [one.ok for one in found] == [True, False]
    assert "no group hpc-staf (" in found[1].text


def test_a_silent_login_node_is_said_once() -> None:
    found = list(check_admin_groups(["a", "b"], "slipway", Groups(silent=True)))
    assert [one.ok for one in found] == [False]
