"""What runs inside the job: starts the apps, guards their one TCP port, reports to the portal.

Standard library only and nothing else of this project, since it travels alone in the toolkit. Every
import costs the user's waiting time (hence no typing, dataclasses, asyncio or http.client here).
"""
