"""A transport that nothing may use."""

from __future__ import annotations

from collections.abc import Sequence

from portal.adapters.ssh.transport import Completed


class NoTransport:
    """Fails at each use."""

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Fail."""
        raise AssertionError(f"{user} ran {argv}")
