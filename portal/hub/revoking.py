"""Revokes the tokens of those who have logged out of JupyterHub, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from logging import Logger, LoggerAdapter

from portal.client import Client, NoAnswer, Refused
from portal.hub.connection import ask_for_log_out

PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds until the next try; doubled with each that fails."""
MOST = 1000
"""Tokens that wait for the portal; the oldest is left to expire."""
REVOKED = frozenset({401, 404})
"""Statuses of a token that has been revoked meanwhile."""


class Revocations:
    """One task, whose questions have a thread of their own, however many log out."""

    def __init__(self, connect: Callable[[], Client], log: Logger | LoggerAdapter[Logger]) -> None:
        """`connect`: a client of the portal's, without a token."""
        self._connect = connect
        self._log = log
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, token: str) -> asyncio.Future[None]:
        """Revoke it, sooner or later; the future is done when nothing is left to do."""
        done = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= MOST:
            self._waiting.popleft()[1].set_result(None)
            self._log.error("A token is left to expire: %s others wait to be revoked", MOST)
        self._waiting.append((token, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return done

    async def _work(self) -> None:
        pause = PAUSE
        while self._waiting:
            token, done = self._waiting.popleft()
            if await self._revoke(token):
                done.set_result(None)
                pause = PAUSE
            else:
                self._waiting.append((token, done))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _revoke(self, token: str) -> bool:
        """Whether there is nothing left to do."""
        try:
            await ask_for_log_out(self._connect().acting_for(token).revoke_own_token)
        except (Refused, NoAnswer) as error:
            if not isinstance(error, Refused) or error.is_passing:
                self._log.warning("A token is not revoked yet: %s", error)
                return False
            if error.status not in REVOKED:
                self._log.error("A token is not revoked: %s", error)
        return True
