"""The portal's refusals as JupyterHub's pages and REST API show them."""

from __future__ import annotations

from tornado.web import HTTPError

from portal.client import ClientError, Refused

ENDED = 424
"""Status of a start whose session ended; JupyterHub counts statuses from 500 as its own faults."""


class Refusal(HTTPError):
    """An error whose message JupyterHub shows to users."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, text)
        self.jupyterhub_message = text


def for_user(error: ClientError) -> Refusal:
    """Convert the portal's error, with its wrong fields."""
    if not isinstance(error, Refused):
        return Refusal(503, error.text)
    fields = "; ".join(
        f"{field_error.field}: {field_error.message}" for field_error in error.errors
    )
    return Refusal(error.status, fields or error.text)
