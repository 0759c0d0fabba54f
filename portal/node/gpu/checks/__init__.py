"""What `slipway-gpu check` looks at on a node beside Slurm: memory, the driver, Apptainer."""

Finding = tuple[str, str]
"""`ok`, `note` or `wrong`, and the finding."""
