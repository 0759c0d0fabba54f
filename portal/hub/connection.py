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

# Not the event loop's own threads: JupyterHub needs those while the portal does not answer.
_THREADS = ThreadPoolExecutor(32, "slipway")
# A wrong password takes seconds: those who try some keep the threads from nobody who is logged in.
_STRANGERS = ThreadPoolExecutor(16, "slipway-login")
# Nor do log-outs while the portal is away.
_LOG_OUTS = ThreadPoolExecutor(1, "slipway-logout")


@cache
def connection(url: str, authority: str) -> Client:
    """A client without a token; `authority`: PEM file of the certificate's authority, or ""."""
    return Client(url, verify=authority or True)


async def ask(what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a method of the client in a thread."""
    work = partial(what, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


async def ask_for_stranger(what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for somebody who is not logged in."""
    work = partial(what, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_STRANGERS, work)


async def ask_for_log_out(what: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for somebody who has logged out; one at a time."""
    work = partial(what, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_LOG_OUTS, work)
