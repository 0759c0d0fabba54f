"""Unpacking of archives: their formats, protections against hostile ones, and the new folder."""
