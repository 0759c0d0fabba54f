"""Backups of the state directory and of the database, and their restoration."""
