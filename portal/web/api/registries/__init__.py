"""Logins for the registries of own images."""
