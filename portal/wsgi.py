"""The web application for gunicorn: `gunicorn portal.wsgi:app`."""

from portal import create_app
from portal.config import load_settings
from portal.wiring import wire

app = create_app(wire(load_settings()))
