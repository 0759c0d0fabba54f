"""Slipway's commands for batch jobs (`slipway sbatch`, `srun`, `salloc`), and their part on nodes.

One file on login and compute nodes (build.sh), which needs Python 3.9 and nothing else.
"""
