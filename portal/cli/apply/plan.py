"""What differs between the settings and what runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jinja2 import TemplateError

from portal.cli.apply import applied
from portal.cli.apply.applied import Applied
from portal.cli.apply.files import RenderedFile, rendered_files
from portal.cli.apply.processes import Processes
from portal.config import Settings


class Refused(Exception):
    """Nothing is to be changed; the text says why."""


@dataclass(frozen=True)
class Plan:
    """What differs from the settings."""

    files: Sequence[RenderedFile]
    known: Applied
    wanted: Applied
    stopped: frozenset[str] = frozenset()
    """Of "proxy", "web" and "worker", those that do not run."""

    @property
    def proxy(self) -> bool:
        """Whether HAProxy has to be reloaded."""
        changed = self.known.proxy != self.wanted.proxy or self._differs(".cfg")
        return changed or "proxy" in self.stopped

    @property
    def web(self) -> bool:
        """Whether gunicorn needs new workers."""
        return self.known.web != self.wanted.web or self.new_gunicorn

    @property
    def worker(self) -> bool:
        """Whether the worker has to be restarted."""
        changed = self.known.worker != self.wanted.worker
        return changed or self._differs("slipway-worker.service") or "worker" in self.stopped

    @property
    def units(self) -> bool:
        """Whether systemd has to read its units again."""
        return self._differs(".service", ".target")

    @property
    def new_gunicorn(self) -> bool:
        """Whether gunicorn itself has to be restarted."""
        other = self.known.gunicorn not in ("", self.wanted.gunicorn)
        return other or self._differs("slipway-web.service") or "web" in self.stopped

    @property
    def new_proxy_unit(self) -> bool:
        """Whether HAProxy's unit is another one, which a reload does not take over."""
        return self._differs("slipway-proxy.service")

    def _differs(self, *endings: str) -> bool:
        return any(file.differs and file.path.name.endswith(endings) for file in self.files)

    def __bool__(self) -> bool:
        return self.proxy or self.web or self.worker or self.units

    def lines(self) -> Iterator[str]:
        """What differs, and what follows from it."""
        for file in self.files:
            if file.differs:
                yield from file.diff()
        if self.proxy:
            yield self._line("proxy", "reload; open streams go on")
        if self.web and self.new_gunicorn:
            yield self._line("web", "restart; pages answer 503 for some seconds, apps go on")
        elif self.web:
            yield self._line("web", "reload; its workers are replaced one by one")
        if self.worker:
            yield self._line("worker", "restart")

    def _line(self, name: str, action: str) -> str:
        return f"slipway-{name}: {'start' if name in self.stopped else action}"


def make_plan(settings: Settings, processes: Processes) -> Plan:
    """Compare; raises Refused."""
    try:
        files = rendered_files(settings)
    except (OSError, TemplateError) as error:
        raise Refused(f"the files cannot be rendered: {error}") from error
    known = applied.read(settings, processes.running())
    return Plan(files, known, applied.wanted(settings, files[0].text), processes.stopped())
