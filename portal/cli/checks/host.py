"""The portal's own host: its account, its folders, the settings file, and HAProxy."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import TemplateError

from portal.cli.findings import Finding, warn
from portal.cli.render import haproxy, haproxy_config
from portal.config import Settings

OLDEST_HAPROXY = (3, 0)
SECONDS = 20
_MAX_LINES = 3
"""Lines of HAProxy's messages that are shown."""


def check_account(settings: Settings, uid: int) -> Iterator[Finding]:
    """Whether this command runs as the portal's account."""
    state = Path(settings.state.directory)
    owner = state.stat().st_uid if state.exists() else uid
    if uid == 0:
        yield warn(
            "this runs as root, who may read and write everything: run it as the portal's "
            f"account, the owner of {state}"
        )
    elif owner != uid:
        yield Finding(
            False, f"{state} belongs to another account (UID {owner}): run this as that one"
        )


def check_settings_file(file: Path) -> Iterator[Finding]:
    """Whether others can read a password in the settings."""
    try:
        mode = file.stat().st_mode
        database = tomllib.loads(file.read_text(encoding="utf-8")).get("state", {})
    except (OSError, ValueError):
        return  # it was read before, or does not exist
    if urlsplit(str(database.get("database", ""))).password and mode & stat.S_IROTH:
        yield Finding(
            False,
            f"{file} has the database's password, and everybody on this machine can read it: "
            f"chmod 640 {file}, and give it to the group of the portal's account",
        )


def check_secret(name: str, file: Path) -> Iterator[Finding]:
    """Whether a file has exactly one line, a secret, and only the portal can read it."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text"
        yield Finding(False, f"{name} {file}: {why}")
        return
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding(
            False,
            f"{name} {file} can be read by others: chmod 400 {file}, and make it the portal's "
            "account's",
        )
    if not text or "\n" in text:
        yield Finding(False, f"{name} {file}: its only line must be the secret")


def check_hub(settings: Settings) -> Iterator[Finding]:
    """Whether JupyterHub can tell the portal its clients' addresses; nothing without a hub."""
    file = settings.hub.front_end_token_file
    if file:
        yield from check_secret("hub.front_end_token_file", Path(file))
    elif settings.hub.listen and settings.oidc.passwords:
        yield warn(
            "hub.front_end_token_file is not set: all who log in at JupyterHub with a password of "
            "the portal's count as one address, so wrong passwords of one lock out all"
        )


def check_folders(settings: Settings) -> Iterator[Finding]:
    """The folders that the portal writes to."""
    state = settings.state
    for folder, remedy in (
        (Path(state.directory), "run `slipway init`"),
        (Path(state.run), f"install -d -m 700 -o ACCOUNT {state.run}, or start slipway-web"),
        (state.keys, "run `slipway init`"),
        (state.ca_file(""), "run `slipway init`"),
    ):
        if not folder.is_dir():
            yield Finding(False, f"{folder} is not there: {remedy}")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield Finding(False, f"{folder} cannot be written by this account: chown it")


def check_keys(settings: Settings) -> Finding:
    """Whether `slipway init` has run."""
    keys = settings.state.ca_file("user_ca")
    try:
        exist = keys.exists()
    except PermissionError:
        text = "cannot be read by this account; run this as the portal's"
        return Finding(False, f"{keys.parent} {text}")
    if not exist:
        return Finding(False, f"{keys}: run `slipway init`")
    return Finding(True, f"keys in {keys.parent}")


def check_haproxy(settings: Settings) -> Iterator[Finding]:
    """HAProxy's version, and whether it accepts the output of `slipway render haproxy`."""
    try:
        output = _run([haproxy(), "-v"])
    except OSError:
        yield Finding(False, "haproxy is not installed on this machine, or not in PATH")
        return
    match = re.search(r"version (\d+)\.(\d+)\S*", output)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_HAPROXY:
        oldest = ".".join(map(str, OLDEST_HAPROXY))
        version = match[0] if match else "an unknown version"
        yield Finding(False, f"haproxy: {version}; {oldest} or newer is needed")
        return
    yield Finding(True, f"haproxy {match[0]}")
    try:
        text = haproxy_config(settings)
    except (TemplateError, OSError) as error:
        yield Finding(False, f"HAProxy's configuration cannot be rendered: {error}")
        return
    yield accepted(text)


def accepted(text: str) -> Finding:
    """Whether HAProxy accepts this configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".cfg", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            result = subprocess.run(
                [haproxy(), "-c", "-f", file.name],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                cwd="/",  # haproxy returns to its working directory, which may be root's home
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding(False, f"haproxy -c: {error}")
    if result.returncode == 0:
        return Finding(True, "HAProxy accepts the rendered configuration (haproxy -c)")
    lines = [line.strip() for line in (result.stderr + result.stdout).splitlines()]
    alerts = [line.replace(file.name, "haproxy.cfg") for line in lines if "ALERT" in line]
    message = "; ".join(alerts[:_MAX_LINES]) or f"exit code {result.returncode}"
    return Finding(False, f"HAProxy refuses the rendered configuration: {message}")


def _run(argv: list[str]) -> str:
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return result.stdout
