"""Slurm's limits and rules, read from sacctmgr, scontrol and sinfo for all users at once."""
