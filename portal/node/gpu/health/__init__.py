"""What root does on every node, with or without a GPU, when Slurm asks for it.

Slurm runs `slipway-gpu health` from time to time (HealthCheckProgram), and `slipway-gpu unkillable`
for a step whose processes do not end (UnkillableStepProgram).
"""
