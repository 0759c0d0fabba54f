"""Slipway: a portal in front of Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from portal.services.container import Services


def create_app(services: Services) -> Flask:
    """Build the web application on services wired by an entry point."""
    # Imported here, since the worker, the runner and the core in this package do not need Flask.
    from portal.web.app import build  # noqa: PLC0415

    return build(services)
