"""Submission of scripts that run in an image."""
