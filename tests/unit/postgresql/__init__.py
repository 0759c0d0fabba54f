"""Tests that run on SQLite elsewhere, here on PostgreSQL."""
