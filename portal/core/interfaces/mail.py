"""The site's mail server."""

from __future__ import annotations

from typing import Protocol

from portal.core.mail.messages import Mail


class MailUnavailable(Exception):
    """The mail server does not take mail at the moment."""


class MailServer(Protocol):
    """Sends mail."""

    def send(self, recipient: str, mail: Mail, stop: str) -> None:
        """Hand a mail over to the server; `stop` is the address that ends all mail to this user.

        Raises MailUnavailable. A mail that the server refuses for good is logged and dropped.
        """
        ...
