"""What the running processes were started with, as digests in the state directory."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import portal
from portal.adapters import private_files
from portal.cli.render import systemd_units
from portal.config import Settings
from portal.version import release

_FILE = "applied.json"


@dataclass(frozen=True)
class Applied:
    """Digests of what the processes depend on; "" where that is not known."""

    proxy: str = ""
    """HAProxy: its configuration, certificates and error pages."""
    web: str = ""
    worker: str = ""
    """Both: settings and release."""
    gunicorn: str = ""
    """What only a restart changes: what gunicorn's first process has loaded, and its unit."""
    web_process: str = ""
    worker_process: str = ""
    """The processes of which this is known, by number and start."""


IN_GUNICORN = (
    "gunicorn",
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
)
"""Packages that gunicorn's first process loads, for the portal's form of its log."""


def wanted(settings: Settings, haproxy_config: str) -> Applied:
    """The digests of a portal that was started now."""
    pages = Path(settings.sessions.templates) / "haproxy"
    proxy = _digest([haproxy_config.encode(), *_contents([*_certificates(settings), pages])])
    program = _digest([settings.model_dump_json().encode(), release().encode(), *_code(settings)])
    packages = ", ".join(f"{name} {version(name)}" for name in IN_GUNICORN)
    server = f"{packages}, Python {platform.python_version()}"
    if settings.service.supervisor == "systemd":
        # A package brings units of its own, which an upgrade replaces.
        unit = systemd_units(settings)["slipway-web.service"]
        server += f", unit {_digest([unit.encode()])[:16]}"
    return Applied(proxy=proxy, web=program, worker=program, gunicorn=server)


def read(settings: Settings, running: Mapping[str, str]) -> Applied:
    """What these processes run, as far as it is known.

    Nothing is known of those that were started since: a rollback may have started an earlier
    release. Then systemd may also run an earlier gunicorn, which a package has replaced.
    """
    known = _read(settings)
    if known.web_process != running.get("web", ""):
        known = replace(known, web="", gunicorn=_unknown(settings))
    if known.worker_process != running.get("worker", ""):
        known = replace(known, worker="")
    return known


def _unknown(settings: Settings) -> str:
    return "unknown" if settings.service.supervisor == "systemd" else ""


def _read(settings: Settings) -> Applied:
    try:
        data = json.loads(_place(settings).read_text(encoding="utf-8"))
        return Applied(**{name: str(data[name]) for name in asdict(Applied())})
    except (OSError, ValueError, KeyError, TypeError):
        return Applied(gunicorn=_unknown(settings))


def save(settings: Settings, applied: Applied) -> None:
    """Store it; raises OSError."""
    text = json.dumps(asdict(applied), indent=2) + "\n"
    private_files.write(_place(settings), text.encode(), 0o644)


def _place(settings: Settings) -> Path:
    state = settings.state
    # Several hosts may share the directory.
    name = f"applied-{state.this_host}.json" if state.several_hosts else _FILE
    return Path(state.directory) / name


def _certificates(settings: Settings) -> Iterator[Path]:
    hub = settings.hub
    for file in (settings.web.tls_certificate, hub.tls_certificate, hub.client_ca):
        if file:
            yield Path(file)
    yield from sorted(settings.state.ca_file("").glob("*.pem"))


def _contents(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            try:
                yield file.read_bytes()
            except OSError:
                yield b""  # the checks have named it


def _code(settings: Settings) -> Iterator[bytes]:
    """The program and its templates, by size and time: an upgrade replaces these files."""
    package = Path(portal.__file__).parent
    for folder in (package, Path(settings.sessions.templates)):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".html", ".j2", ".js", ".css") and file.is_file():
                found = file.stat()
                yield f"{file}:{found.st_size}:{found.st_mtime_ns}".encode()


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
