"""[log] and [monitoring]: logs, metrics and health of the running portal."""
