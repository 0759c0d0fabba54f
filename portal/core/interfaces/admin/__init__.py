"""Interfaces to what administrators read."""
