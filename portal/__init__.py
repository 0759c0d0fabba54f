"""Slipway: a portal in front of Slurm."""
