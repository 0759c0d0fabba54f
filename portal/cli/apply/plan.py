"""Differences between the settings and the running portal."""

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
    """The changes are refused; the text says why."""


@dataclass(frozen=True)
class Plan:
    """Changes that make the portal run as the settings say."""

    files: Sequence[RenderedFile]
    applied: Applied
    target: Applied
    stopped: frozenset[str] = frozenset()
    """Names of the processes that do not run: "proxy", "web", "worker"."""

    @property
    def proxy(self) -> bool:
        """Whether HAProxy has to be reloaded."""
        changed = self.applied.proxy != self.target.proxy or self._differs(".cfg")
        return changed or "proxy" in self.stopped

    @property
    def web(self) -> bool:
        """Whether gunicorn needs new workers."""
        return self.applied.web != self.target.web or self.new_gunicorn

    @property
    def worker(self) -> bool:
        """Whether the worker has to be restarted."""
        changed = self.applied.worker != self.target.worker
        return changed or self._differs("slipway-worker.service") or "worker" in self.stopped

    @property
    def units(self) -> bool:
        """Whether systemd has to read its units again."""
        return self._differs(".service", ".target")

    @property
    def new_gunicorn(self) -> bool:
        """Whether gunicorn itself has to be restarted."""
        other = self.applied.gunicorn not in ("", self.target.gunicorn)
        return other or self._differs("slipway-web.service") or "web" in self.stopped

    @property
    def new_proxy_unit(self) -> bool:
        """Whether HAProxy's unit has changed, which needs a restart instead of a reload."""
        return self._differs("slipway-proxy.service")

    def _differs(self, *endings: str) -> bool:
        return any(file.differs and file.path.name.endswith(endings) for file in self.files)

    def __bool__(self) -> bool:
        return self.proxy or self.web or self.worker or self.units

    def lines(self) -> Iterator[str]:
        """Describe the differences and the resulting actions."""
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
    """Compare the settings with the running portal; raises Refused."""
    try:
        files = rendered_files(settings)
    except (OSError, TemplateError) as error:
        raise Refused(f"the files cannot be rendered: {error}") from error
    current = applied.read(settings, processes.running())
    return Plan(files, current, applied.target(settings, files[0].text), processes.stopped())
