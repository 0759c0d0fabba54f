"""Interfaces to the users' file servers, and to the store of where they run."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from portal.core.apps.access import Grant
from portal.core.files.server import FileReply, FileRequest, FileServer, NoReply, StartOrder


class FileServerHost(Protocol):
    """Starts file servers as their users, and sends requests to them."""

    def start(self, owner: str, order: StartOrder) -> tuple[str, int]:
        """Start the user's file server, replacing an earlier one; returns address and port.

        Raises Unavailable, also if the server that the order excepts still runs.
        """
        ...

    def clean(self, owner: str, order: StartOrder) -> int:
        """Remove the user's uploads that expired; returns how many others are unfinished.

        Raises Unavailable.
        """
        ...

    def ask(self, server: FileServer, request: FileRequest) -> FileReply | NoReply:
        """Send a request; NoReply if this server does not answer, so that nothing was done.

        Raises Unavailable if it does not answer in time.
        """
        ...


class FileServerStore(Protocol):
    """Where file servers run, and who has access to them. Every method is one transaction."""

    def server(self, owner: str) -> FileServer | None:
        """The user's file server."""
        ...

    def claim_start(self, owner: str, dead: str, now: datetime, until: datetime) -> bool:
        """Claim to start a user's server in place of the one with the id `dead` ("": none).

        False if another process has started one, or claims to, until then.
        """
        ...

    def save(self, server: FileServer) -> None:
        """Store a started server; ends the claim."""
        ...

    def give_up_start(self, owner: str) -> None:
        """End the claim without a server."""
        ...

    def uncleaned(self, before: datetime, most: int) -> list[str]:
        """Users whose server was last started before a time, and was not cleaned up after since."""
        ...

    def set_cleaned(self, owner: str, now: datetime) -> None:
        """Store that nothing unfinished is left of a user's server, until it starts again."""
        ...

    def admit(self, grant: Grant, most: int) -> list[str]:
        """Give a cookie or token access to its owner's server, as long as its login lasts.

        The user keeps the newest `most`; returns the hashes of those that were dropped.
        """
        ...

    def grant(self, secret_hash: str) -> Grant | None:
        """The access of a cookie or token; None if it has none."""
        ...

    def routes(self, now: datetime, owner: str | None = None) -> dict[str, str]:
        """The routes that should exist (of one user's, or all): keys and targets."""
        ...

    def expire(self, now: datetime) -> None:
        """Delete access whose login has expired or was revoked."""
        ...
