"""Checks of `slipway-gpu check` apart from Slurm: GPU memory, the driver, Apptainer."""

Finding = tuple[str, str]
"""(`ok`, `note` or `wrong`; message)."""
