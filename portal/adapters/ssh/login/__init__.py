"""Log-ins with a password and, where the login node asks for it, a second factor."""
