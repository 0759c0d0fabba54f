"""Walks through everything below a folder, by descriptor and without following links."""
