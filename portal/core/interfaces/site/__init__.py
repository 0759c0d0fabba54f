"""Interfaces for the site: announcements, maintenance, usage."""
