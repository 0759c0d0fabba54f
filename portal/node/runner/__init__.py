"""Runs inside the job: starts the apps, secures their TCP port, and reports to the portal.

Only the standard library and nothing else of this project, since it is shipped in the toolkit.
Every import delays the start (hence no typing, dataclasses, asyncio or http.client here).
"""
