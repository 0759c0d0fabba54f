"""What Slurm's configuration and reservations say, beside its limits."""
