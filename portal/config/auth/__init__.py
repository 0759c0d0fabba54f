"""Methods of login besides the login node's password."""
