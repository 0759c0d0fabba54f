"""The spawner's launch request: the user's options, with the site's configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.core.launch.names import session_name
from portal.hub.refusals import Refusal

PREFIXES = ("JUPYTERHUB_", "JPY_")
OWN = frozenset({"hub", "count"})
"""Fields that the spawner sets, or that have no meaning for a server."""
LIMITS = frozenset({"MEM_LIMIT", "MEM_GUARANTEE", "CPU_LIMIT", "CPU_GUARANTEE"})
"""Variables for JupyterHub's own limits, which do not apply to the session."""
FILES = {"keyfile": "KEYFILE", "certfile": "CERTFILE", "cafile": "CLIENT_CA"}
"""Names of create_certs' paths, and suffixes of JupyterHub's variables for them."""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate for internal_ssl: contents of PEM files by their names in FILES."""

    files: Mapping[str, str]

    @classmethod
    def read(cls, paths: Mapping[str, str]) -> Certificate:
        """Read the files that JupyterHub has made for one server."""
        return cls({name: Path(paths[name]).read_text(encoding="ascii") for name in FILES})

    def variables(self) -> dict[str, str]:
        """One variable for each file, on one line; apps/jupyterhub/start.sh writes the files."""
        return {
            f"JUPYTERHUB_SSL_{end}_PEM": self.files[name].strip().replace("\n", "\\n")
            for name, end in FILES.items()
        }


def server(prefix: str, env: Mapping[str, str], certificate: Certificate | None) -> dict[str, Any]:
    """The launch request's field `hub`, from the environment that JupyterHub sets."""
    variables = {name: value for name, value in env.items() if name.startswith(PREFIXES)}
    for end in FILES.values():
        variables.pop(f"JUPYTERHUB_SSL_{end}", None)
    return {"prefix": prefix, "env": variables | (certificate.variables() if certificate else {})}


def check_options(options: object) -> None:
    """Raise Refusal for options that cannot be sent; the portal checks all others."""
    if not isinstance(options, dict):
        raise Refusal(422, "user_options: send an object with the fields of a launch")
    for field in _not_finite(options):
        raise Refusal(422, f"{field}: numbers must be finite")


def _not_finite(value: object, path: str = "") -> Iterator[str]:
    """Paths of NaN and infinity, which Python accepts in JSON although the standard does not."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for name, part in parts:
        yield from _not_finite(part, f"{path}.{name}" if path else str(name))


def session_name_of(server: str) -> str | None:
    """The server's name as the session's name; None if the portal does not permit it."""
    try:
        return session_name(server or "jupyter")
    except ValueError:
        return None


def site_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Variables from `environment`, `env_keep`, and subclasses that extend get_env."""
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(PREFIXES) and name not in LIMITS
    }


def with_site_defaults(
    options: Mapping[str, Any],
    variables: Mapping[str, str],
    cpus: float | None,
    memory: int | None,
) -> dict[str, Any]:
    """Merge the user's options with the site's.

    `variables` are those of site_variables(), which take precedence; `cpus` and `memory` (bytes)
    are used if the user has chosen no resources.
    """
    body = {name: value for name, value in options.items() if name not in OWN}
    if variables:
        chosen = body.get("env", {})
        # An invalid value is sent unchanged, so that the portal reports it.
        body["env"] = {**chosen, **variables} if isinstance(chosen, dict) else chosen
    if memory and not body.keys() & {"resources", "template"}:
        amount = {"memory": f"{math.ceil(memory / 2**20)}m"}
        body["resources"] = amount | ({"cpus": math.ceil(cpus)} if cpus else {})
    return body
