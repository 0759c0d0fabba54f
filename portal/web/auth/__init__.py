"""Authentication: browser logins and API tokens, both stored on the server."""
