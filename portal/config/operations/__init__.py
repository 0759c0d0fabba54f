"""[log] and [monitoring]: what administrators read of the running portal."""
