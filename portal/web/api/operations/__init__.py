"""The REST API of announcements, maintenance and usage."""
