"""The queue by pyslurm instead of squeue (`slurm.reader`), on hosts that are Slurm clients."""
