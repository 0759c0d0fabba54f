"""One form of logging for gunicorn, the worker and the command line."""
