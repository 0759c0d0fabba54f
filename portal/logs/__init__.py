"""A common log format for gunicorn, the worker and the command line."""
