"""Authentication: browser log-ins and API tokens, both stored on the server."""
