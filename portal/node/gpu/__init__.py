"""`slipway-gpu`: root's side of fractional GPUs on the compute nodes.

It runs without the portal, on Python 3.9 or newer, with nothing but the standard library and
portal.node.common.fgpu, and is copied to the nodes as one zipapp (gres/build.sh).
"""
