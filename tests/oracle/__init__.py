"""An oracle for `slipway sbatch`: random jobs, by sbatch and in an image with a node's user land.

`python -m tests.oracle N [--seed S] [--first K]` on the cluster that SLIPWAY_PROJECT names. The
same seed and number always make the same case; each difference is printed with the command that
repeats its case. tests/slurm/test_oracle.py runs 30 of a fixed seed.
"""
