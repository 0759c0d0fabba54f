"""The web application for gunicorn: `gunicorn portal.wsgi:app`."""

from portal import create_app
from portal.adapters.backup.state import use
from portal.config import load_settings
from portal.wiring import wire

_settings = load_settings()
use(_settings.state)
app = create_app(wire(_settings))
