"""Sequential revocation of the tokens of users who have logged out of JupyterHub."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from logging import Logger, LoggerAdapter

from portal.client import Client, NoAnswer, Refused
from portal.hub.connection import ask_for_logout

PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds until the next attempt; doubled after each failure."""
MOST = 1000
"""Maximum number of waiting tokens; beyond it the oldest is left to expire."""
REVOKED = frozenset({401, 404})
"""Statuses of a token that is already revoked."""


class Revocations:
    """A queue of tokens to revoke, processed by one task and one thread."""

    def __init__(self, connect: Callable[[], Client], log: Logger | LoggerAdapter[Logger]) -> None:
        """`connect` returns a client of the portal without a token."""
        self._connect = connect
        self._log = log
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, token: str) -> asyncio.Future[None]:
        """Queue a token; the future is done when it is revoked or left to expire."""
        future = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= MOST:
            self._waiting.popleft()[1].set_result(None)
            self._log.error("A token is left to expire: %s others wait to be revoked", MOST)
        self._waiting.append((token, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return future

    async def _work(self) -> None:
        pause = PAUSE
        while self._waiting:
            token, future = self._waiting.popleft()
            if await self._revoke(token):
                future.set_result(None)
                pause = PAUSE
            else:
                self._waiting.append((token, future))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _revoke(self, token: str) -> bool:
        """Revoke a token; False if it has to be tried again."""
        try:
            await ask_for_logout(self._connect().acting_for(token).revoke_own_token)
        except (Refused, NoAnswer) as error:
            if not isinstance(error, Refused) or error.is_passing:
                self._log.warning("A token is not revoked yet: %s", error)
                return False
            if error.status not in REVOKED:
                self._log.error("A token is not revoked: %s", error)
        return True
