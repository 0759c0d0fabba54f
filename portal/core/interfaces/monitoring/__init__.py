"""Interfaces for monitoring the portal."""
