"""Interfaces to what concerns the whole site: announcements, maintenance, usage."""
