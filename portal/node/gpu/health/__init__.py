"""Node health programs that Slurm runs as root on every node, with or without a GPU.

Slurm runs `slipway-gpu health` from time to time (HealthCheckProgram), and `slipway-gpu unkillable`
for a step whose processes do not end (UnkillableStepProgram).
"""
