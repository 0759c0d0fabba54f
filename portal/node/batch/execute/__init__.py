"""Execution on the nodes: batch scripts and steps in their images."""
