"""The web application for gunicorn: `gunicorn portal.wsgi:app`."""

from pathlib import Path

from portal.adapters.backup.state import use
from portal.adapters.web_processes import announce
from portal.config import load_settings
from portal.logs.setup import configure
from portal.web.app import create_app
from portal.wiring import wire

_settings = load_settings()
configure(_settings.log)
use(_settings.state)
app = create_app(wire(_settings, metrics=_settings.state.metrics, threads=_settings.web.threads))
announce(Path(_settings.state.run))
