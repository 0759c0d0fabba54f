"""Announcements and maintenance over the REST API."""
