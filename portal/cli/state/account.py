"""Check of the account that may change the state directory."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from portal.config import Settings


def fail(text: str) -> int:
    """Print a problem; returns the exit status."""
    print(f"slipway: {text}", file=sys.stderr)
    return 1


def wrong_account(settings: Settings) -> str:
    """Why this account must not write there, since the portal could not read it; "" if it may."""
    state = Path(settings.state.directory)
    try:
        owner = state.stat().st_uid
    except OSError as error:
        advice = f"install -d -o slipway -g slipway -m 700 {state}"
        return f"{state}: {error.strerror}; create it for the portal's account: {advice}"
    if owner == os.geteuid():
        return ""
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"number {owner}"
    return f"{state} belongs to the account {name}: run this as {name} (runuser -u {name} -- …)"
