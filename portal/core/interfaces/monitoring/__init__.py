"""Interfaces for watching the portal."""
