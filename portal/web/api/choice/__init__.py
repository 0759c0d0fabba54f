"""Slurm's own options over the REST API: what may be chosen, and what accounts have left."""
