"""Mounts that the runner sets up before the apps start."""
