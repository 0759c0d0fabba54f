"""Digests of the inputs of the running processes, in the state directory."""

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
from portal.cli.web import gunicorn_arguments
from portal.config import Settings
from portal.version import release

_FILE = "applied.json"


@dataclass(frozen=True)
class Applied:
    """Digests of the processes' inputs; "" if unknown."""

    proxy: str = ""
    """HAProxy: its configuration, certificates and error pages."""
    web: str = ""
    worker: str = ""
    """web and worker: settings and release."""
    gunicorn: str = ""
    """Inputs that only a restart changes: code in gunicorn's master process, and its unit."""
    web_process: str = ""
    worker_process: str = ""
    """The processes to which the digests apply, by PID and start time."""


IN_GUNICORN = (
    "gunicorn",
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
)
"""Packages that gunicorn's master process loads, for the portal's log format."""


def target(settings: Settings, haproxy_config: str) -> Applied:
    """The digests of a portal that is started with the current files."""
    pages = Path(settings.sessions.templates) / "haproxy"
    proxy = _digest([haproxy_config.encode(), *_contents([*_certificates(settings), pages])])
    program = _digest([settings.model_dump_json().encode(), release().encode(), *_code(settings)])
    packages = ", ".join(f"{name} {version(name)}" for name in IN_GUNICORN)
    arguments = " ".join(gunicorn_arguments(settings))
    server = f"{packages}, Python {platform.python_version()}, {arguments}"
    if settings.service.supervisor == "systemd":
        # Units are part of the package, so an upgrade replaces them.
        unit = systemd_units(settings)["slipway-web.service"]
        server += f", unit {_digest([unit.encode()])[:16]}"
    return Applied(proxy=proxy, web=program, worker=program, gunicorn=server)


def read(settings: Settings, running: Mapping[str, str]) -> Applied:
    """The stored digests, without those of processes that were started since.

    A rollback may have started an earlier release. With systemd, it may also have started an
    earlier gunicorn, which a package has replaced.
    """
    applied = _read(settings)
    if applied.web_process != running.get("web", ""):
        applied = replace(applied, web="", gunicorn=_unknown(settings))
    if applied.worker_process != running.get("worker", ""):
        applied = replace(applied, worker="")
    return applied


def _unknown(settings: Settings) -> str:
    return "unknown" if settings.service.supervisor == "systemd" else ""


def _read(settings: Settings) -> Applied:
    try:
        data = json.loads(_path(settings).read_text(encoding="utf-8"))
        return Applied(**{name: str(data[name]) for name in asdict(Applied())})
    except (OSError, ValueError, KeyError, TypeError):
        return Applied(gunicorn=_unknown(settings))


def save(settings: Settings, applied: Applied) -> None:
    """Store the digests; raises OSError."""
    text = json.dumps(asdict(applied), indent=2) + "\n"
    private_files.write(_path(settings), text.encode(), 0o644)


def _path(settings: Settings) -> Path:
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
                yield b""  # reported by the checks


def _code(settings: Settings) -> Iterator[bytes]:
    """Sizes and times of the program's files and templates, which an upgrade replaces."""
    package = Path(portal.__file__).parent
    for folder in (package, Path(settings.sessions.templates)):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".html", ".j2", ".js", ".css") and file.is_file():
                status = file.stat()
                yield f"{file}:{status.st_size}:{status.st_mtime_ns}".encode()


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
