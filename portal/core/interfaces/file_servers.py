"""Interface to the users' file servers."""

from __future__ import annotations

from typing import Protocol

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
