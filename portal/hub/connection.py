"""JupyterHub's connections to the portal, which all servers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

from portal.client import Client

P = ParamSpec("P")
T = TypeVar("T")

# Not the event loop's default threads, which JupyterHub needs while the portal does not answer.
_THREADS = ThreadPoolExecutor(32, "slipway")
# A wrong password takes seconds: login attempts must not block users who are logged in.
_LOGINS = ThreadPoolExecutor(16, "slipway-login")
# Nor must logouts while the portal does not answer.
_LOGOUTS = ThreadPoolExecutor(1, "slipway-logout")


@cache
def connection(url: str, authority: str) -> Client:
    """A client without a token; `authority`: PEM file of the certificate's authority, or ""."""
    return Client(url, verify=authority or True)


async def ask(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a method of the client in a thread."""
    work = partial(method, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


async def ask_for_login(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a method for a user who is not logged in yet."""
    work = partial(method, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_LOGINS, work)


async def ask_for_logout(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a method for a user who has logged out; one at a time."""
    work = partial(method, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_LOGOUTS, work)
