"""`slipway-gpu`: root's side of fractional GPUs on the compute nodes.

It runs where no portal is: the standard library and portal.core.fgpu alone, Python 3.9 or newer,
carried to the nodes as one zipapp (gres/build.sh).
"""
