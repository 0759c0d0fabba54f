"""A session that JupyterHub asks for: the path of its server, and the server's environment."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote, unquote

from pydantic import AfterValidator, BaseModel, Field

from portal.core.launch.environment import MAX_TOTAL
from portal.core.validation import STRICT, Matching, at_most, wrong
from portal.errors import FieldError

APP = "jupyterhub"
"""Name of the app that runs JupyterHub's single-user server."""
PREFIX = "hub.prefix"
SAFE = "@~"
"""Characters in names that JupyterHub does not escape, besides letters, digits and "_.-"."""
MAX_PREFIX = 200
MAX_VARIABLES = 60
MAX_VALUE = 16_384
"""Characters; CA certificates are the longest values."""
_NAME = re.compile(r"(JUPYTERHUB|JUPYTER|JPY)_[A-Z0-9_]{1,100}")
_RESERVED = re.compile(r"JUPYTER_(CONFIG|PATH|DATA|RUNTIME|PREFER|NO_CONFIG|ALLOW_INSECURE).*")
"""Settings of Jupyter that protect the session; its start script sets them."""


def _check_names(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
            raise wrong(f"{name[:40]} is not one of JupyterHub's variables for its servers")
        if len(value) > MAX_VALUE or not value.isprintable():
            raise wrong(f"{name}: use up to {MAX_VALUE} printable characters")
    if sum(map(len, [*env, *env.values()])) > MAX_TOTAL:
        raise wrong(f"all names and values together may have {MAX_TOTAL:,} characters")
    return env


class HubServer(BaseModel):
    """JupyterHub's server in a session; `env` is secret, since it holds the server's token."""

    model_config = STRICT

    prefix: Annotated[
        str,
        Field(max_length=MAX_PREFIX),
        Matching(r"/([A-Za-z0-9_.~%@!$&*+=-]+/)+", "write the server's path: /user/NAME/"),
    ]
    """$JUPYTERHUB_SERVICE_PREFIX."""
    env: Annotated[
        dict[str, str], at_most(MAX_VARIABLES), AfterValidator(_check_names), Field(repr=False)
    ] = {}


def check_prefix(prefix: str, owner: str, base_url: str) -> list[FieldError]:
    """The problems of a server's path: users may only claim paths of their own servers.

    JupyterHub's paths are BASE_URL/user/NAME/ and BASE_URL/user/NAME/SERVER/, percent-encoded once.
    """
    base = f"{base_url}user/{quote(owner, safe=SAFE)}/"
    if prefix == base or (prefix.startswith(base) and _names_server(prefix.removeprefix(base))):
        return []
    return [FieldError(PREFIX, f"this must be {base}, or {base}NAME/ for a named server")]


def _names_server(segment: str) -> bool:
    """Whether this is one name as JupyterHub encodes it; others could denote another path."""
    name = unquote(segment.removesuffix("/"))
    return (
        f"{quote(name, safe=SAFE)}/" == segment and "/" not in name and name not in ("", ".", "..")
    )
