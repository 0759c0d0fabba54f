"""A user's file server: runs as the user on the files host, for the portal and its HAProxy only.

Started by `slipway file-server` over SSH. Standard library only, Python 3.9.
"""
