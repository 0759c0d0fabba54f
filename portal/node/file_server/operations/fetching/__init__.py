"""Fetches files from URLs."""
