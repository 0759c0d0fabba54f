"""Stores of what concerns the whole site: announcements, maintenance, usage."""
