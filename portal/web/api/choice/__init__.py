"""Slurm's launch options and the accounts' budgets over the REST API."""
