"""The portal's refusals as JupyterHub's pages and REST API show them."""

from __future__ import annotations

from tornado.web import HTTPError

from portal.client import ClientError, Refused

ENDED = 424
"""Status of a start whose session ended: below 500, where JupyterHub counts faults of its own."""


class Refusal(HTTPError):
    """An error whose words JupyterHub shows to users."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.jupyterhub_message = words


def for_user(error: ClientError) -> Refusal:
    """The portal's words, with the fields that are wrong."""
    if not isinstance(error, Refused):
        return Refusal(503, error.text)
    fields = "; ".join(f"{wrong.field}: {wrong.message}" for wrong in error.errors)
    return Refusal(error.status, fields or error.text)
