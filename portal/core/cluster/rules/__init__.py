"""Slurm's configuration and reservations, beside its limits."""
