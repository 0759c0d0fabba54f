"""Announcements and the maintenance mode."""
