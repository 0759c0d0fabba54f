"""`slipway render`: configuration files for this site."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from portal.adapters import private_files
from portal.config import Settings
from portal.core import hosts
from portal.node.common.fgpu import kinds_as_json
from portal.wiring import wire

UNITS = (
    "slipway.target",
    "slipway-web.service",
    "slipway-worker.service",
    "slipway-proxy.service",
)
"""The systemd units; all of them belong in one folder, such as /etc/systemd/system."""


def haproxy_config(settings: Settings) -> str:
    """HAProxy's configuration, /etc/slipway/haproxy.cfg; raises OSError."""
    proof = front_end_hash(settings.hub.front_end_token_file)
    return _rendered(settings, "haproxy/portal.cfg.j2", front_end=proof)


def systemd_units(settings: Settings) -> dict[str, str]:
    """The units by their file names."""
    return {name: _rendered(settings, f"systemd/{name}.j2") for name in UNITS}


def gpu_settings(settings: Settings) -> str:
    """The settings of root's command on the nodes, /etc/slipway/gpu.json."""
    kinds = kinds_as_json(settings.gpu.gpus.kinds)
    sizes = {"margin_mb": settings.gpu.margin_mb, "context_mb": settings.gpu.context_mb}
    return json.dumps({"kinds": kinds, **sizes}, indent=2) + "\n"


def batch_settings(settings: Settings) -> str:
    """The settings of the command on login nodes, /etc/slipway/batch.json."""
    return wire(settings).batch_settings.text()


def render(settings: Settings, what: str, output: Path | None) -> None:
    """Write to `output`, a folder for systemd and else a file, or print; raises OSError."""
    if what == "systemd":
        units = systemd_units(settings)
        if output is None:
            print("\n".join(_with_headers(units)), end="")
            return
        output.mkdir(parents=True, exist_ok=True)
        for name, text in units.items():
            _write(output / name, text)
        return
    texts = {"haproxy": haproxy_config, "gpu": gpu_settings, "batch": batch_settings}
    text = texts[what](settings)
    if output is None:
        print(text, end="")
    else:
        _write(output, text)


def _rendered(settings: Settings, template: str, **extra: str) -> str:
    environment = Environment(
        loader=FileSystemLoader(settings.sessions.templates),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  # configuration files, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    values = {"settings": settings, "bin": programs(), "haproxy": haproxy(), "hosts": hosts}
    return environment.get_template(template).render(values | extra)


def front_end_hash(file: str) -> str:
    """SHA-256 of JupyterHub's proof, in hexadecimal digits; "" without a file. Raises OSError."""
    if not file:
        return ""
    token = Path(file).read_bytes().strip()
    if not re.fullmatch(rb"[A-Za-z0-9_-]{32,256}", token):
        text = "not one line of 32 to 256 letters and digits; write one with: openssl rand -hex 32"
        raise OSError(errno.EINVAL, text, file)
    return hashlib.sha256(token).hexdigest()


def programs() -> Path:
    """The folder of this installation's programs."""
    return Path(sys.executable).parent


def haproxy() -> str:
    """The HAProxy program: this installation's, else the one in PATH."""
    bundled = programs() / "haproxy"
    return str(bundled) if bundled.is_file() else "haproxy"


def _with_headers(units: dict[str, str]) -> Iterable[str]:
    yield f"# {len(units)} files; `slipway render systemd --output DIR` writes them.\n"
    for name, text in units.items():
        yield f"# ---- {name}\n{text}"


def _write(file: Path, text: str) -> None:
    """Replace a file atomically; it has no secrets, and other accounts have to read it."""
    private_files.write(file, text.encode(), 0o644)
    print(file)
