"""How often one address may try passwords."""

from __future__ import annotations

from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from portal.web.context import services


def _logins() -> str:
    return f"{services().settings.web.logins_per_minute} per minute"


# Counted in each process: with several, an address gets that many times more tries at most.
limiter = Limiter(get_remote_address, storage_uri="memory://")
login_limit = limiter.shared_limit(_logins, scope="login", methods=["POST"])
