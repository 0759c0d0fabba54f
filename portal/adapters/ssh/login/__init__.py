"""Log-ins of people with a password, and what the login node asks besides."""
