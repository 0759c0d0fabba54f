"""HAProxy's route map, changed through its runtime socket without a reload."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice

from portal.adapters.haproxy.map_files import BACKGROUND, CANARY, HUB, ROUTES, MapFiles, parse
from portal.adapters.haproxy.runtime_api import Haproxy, Process
from portal.core.interfaces.systems import Routes
from portal.core.session.idle import Traffic
from portal.errors import Unavailable

_KEY = re.compile(r"([a-z0-9]+|~files)\.([0-9a-f]{64}|public|ssh|hub)")
_TARGET = re.compile(r"[0-9a-fA-F.:]+@[0-9]+@[a-z0-9.-]+")
_PATH = re.compile(r"[A-Za-z0-9_./~%+@=-]+")
_HUB_PATH = re.compile(r"/[A-Za-z0-9_./~%@!$&*+=-]*/")
_INSIDE = re.compile(r"key=([^|\s]+)\|(\S+) use=[1-9]")
_STREAM = re.compile(r"^(0x[0-9a-f]+): proto=\S+ src=(\S+) ", re.MULTILINE)
_SENT = re.compile(r"key=([^|\s]+)\S* .*http_req_cnt=(\d+) bytes_in_cnt=(\d+)")
_SHOW_MAP = re.compile(r"^0x[0-9a-f]+ (\S+) (\S+)$", re.MULTILINE)
_GET_MAP = re.compile(r'key="([^"]*)", value="([^"]*)"')
_AT_ONCE = 50
"""Commands per message: HAProxy reads lines of up to 16 KB."""
_LINES_AT_ONCE = 75
"""Entries per message, for the same reason."""
_MOST_SINGLE = 5
"""Entries that are read one by one; for more of them the whole map is read."""


class HaproxyRoutes(Routes):
    """Routes over HAProxy's runtime API (management guide, section 9.3).

    Each change is written to the file first, which the next process reads, and then sent to the
    running processes. A process that read the file before the change is in the master's list when
    the master answers, so no process is missed, however HAProxy was reloaded.
    """

    def __init__(self, run_directory: str) -> None:
        self._haproxy = Haproxy(run_directory)
        self._files = MapFiles(run_directory)
        self._run = run_directory
        self._comparison = _Comparison("", "")

    def exclusively(self) -> AbstractContextManager[None]:
        return self._files.exclusively()

    def add(self, key: str, target: str) -> None:
        self.add_all({key: target})

    def add_all(self, routes: Mapping[str, str]) -> None:
        for key, target in routes.items():
            if not _KEY.fullmatch(key) or not _TARGET.fullmatch(target):
                raise ValueError("a route that HAProxy would misread")
        self._set(ROUTES, routes)

    def _set(self, name: str, entries: Mapping[str, str]) -> None:
        if not entries:
            return
        with self.exclusively():
            with self._changing(name):
                self._files.set(name, entries)
            self._set_in_memory(self._haproxy.newest(), name, entries)

    def _set_in_memory(self, process: Process, name: str, entries: Mapping[str, str]) -> None:
        """Set entries in a process's memory; two with the same key are possible there."""
        map = f"{self._run}/{name}"
        if len(entries) <= _MOST_SINGLE:
            answers = process.ask(*(f"get map {map} {key}" for key in entries))
            current = dict(_GET_MAP.findall(answers))
        else:
            current = self._shown(process, name)
        changed = {k: v for k, v in entries.items() if current.get(k, v) != v}
        _send(process, (f"set map {map} {key} {value}" for key, value in changed.items()))
        lines = (f"{key} {value}" for key, value in entries.items() if key not in current)
        while batch := list(islice(lines, _LINES_AT_ONCE)):
            # An empty line ends them; the first one ends the message.
            process.ask("\n".join([f"add map {map} <<", *batch, ""]))

    def _write(self, name: str, entries: Mapping[str, str]) -> None:
        with self._changing(name):
            self._files.write(name, entries)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(f"{self._run}/{name} cannot be written: {error.strerror}") from error

    def add_path(self, path: str, key: str) -> None:
        if not _HUB_PATH.fullmatch(path) or not _KEY.fullmatch(key):
            raise ValueError("a path that HAProxy would misread")
        self._set(HUB, {path: key})

    def set_paths(self, paths: Mapping[str, str]) -> None:
        with self.exclusively():
            self._files.compact(HUB)
            process = self._haproxy.newest()
            current, stored = self._shown(process, HUB), self._files.read(HUB)
            if dropped := stored.keys() - paths.keys():
                with self._changing(HUB):
                    self._files.remove(HUB, dropped)
            dropped = current.keys() - paths.keys()
            _send(process, (f"del map {self._run}/{HUB} {path}" for path in dropped))
            missing = paths.items() - (current.items() & stored.items())
            self._set(HUB, dict(missing))

    def remove(self, *keys: str) -> None:
        if not all(_KEY.fullmatch(key) for key in keys):
            raise ValueError("a key that HAProxy would misread")
        if not keys:
            return
        failed: Unavailable | None = None
        with self.exclusively():
            try:
                with self._changing(ROUTES):
                    self._files.remove(ROUTES, keys)
            except Unavailable as error:
                failed = error  # the running processes drop the keys nevertheless
            # First the maps, then open connections: connections in between are already refused.
            processes = list(self._haproxy.processes())
            for process in processes:
                _send(process, (f"del map {self._run}/{ROUTES} {key}" for key in keys))
        for process in processes:
            _send(process, (f"shutdown session {id}" for id in _streams(process, frozenset(keys))))
        if failed is not None:
            raise failed

    def traffic(self) -> dict[str, Traffic]:
        requests: dict[str, int] = defaultdict(int)
        sent: dict[str, int] = defaultdict(int)
        for process in self._haproxy.processes():
            output = process.ask("show table traffic", "show table ssh_traffic")
            for name, count, size in _SENT.findall(output):
                requests[name] += int(count)
                sent[name] += int(size)
        return {name: Traffic(requests[name], sent[name]) for name in requests}

    def set_background_requests(self, paths: Collection[str]) -> None:
        if not all(_PATH.fullmatch(path) for path in paths):
            raise ValueError("a path that HAProxy would misread")
        entries = dict.fromkeys(sorted(paths), "1")
        with self.exclusively():
            process = self._haproxy.newest()
            if entries == self._shown(process, BACKGROUND) == self._files.read(BACKGROUND):
                return
            self._write(BACKGROUND, entries)
            process.ask(f"clear map {self._run}/{BACKGROUND}")
            self._set_in_memory(process, BACKGROUND, entries)

    def is_lost(self) -> bool:
        output = self._haproxy.ask(f"get map {self._run}/{ROUTES} {CANARY}")
        return "value=" not in output or not self._files.is_complete()

    def entries(self) -> dict[str, str]:
        connected = {
            key
            for process in self._haproxy.processes()
            for key, _address in _INSIDE.findall(process.ask("show table live"))
        }
        with self.exclusively():
            self._files.compact(ROUTES)
            stored = self._files.text(ROUTES)
            current = self._show_map(self._haproxy.newest(), ROUTES)
        comparison = self._comparison
        if (comparison.stored, comparison.current) != (stored, current):
            self._comparison = comparison = _Comparison(stored, current)
        return dict.fromkeys(connected - comparison.entries.keys(), "") | comparison.entries

    def _shown(self, process: Process, name: str) -> dict[str, str]:
        """The entries of a map in this process's memory."""
        return _entries(self._show_map(process, name))

    def _show_map(self, process: Process, name: str) -> str:
        return process.ask(f"show map {self._run}/{name}")

    def generation(self) -> str:
        with self._changing(ROUTES):
            return self._files.id(ROUTES)

    def set_complete(self, generation: str) -> None:
        with self.exclusively():
            with self._changing(ROUTES):
                is_same = self._files.set_complete(generation)
            if is_same:
                self._set_in_memory(self._haproxy.newest(), ROUTES, {CANARY: generation})


class _Comparison:
    """The content of the routes' file, and of HAProxy's map, with the entries of both."""

    def __init__(self, stored: str, current: str) -> None:
        self.stored = stored
        self.current = current
        in_file, in_map = parse(stored), _entries(current)
        in_map.pop(CANARY, None)
        # Entries that are not the same in both count as wrong: no route has "".
        self.entries = dict.fromkeys(in_file, "") | in_map
        self.entries |= dict.fromkeys((key for key, _ in in_map.items() - in_file.items()), "")


def _entries(shown: str) -> dict[str, str]:
    """The entries that HAProxy shows; of two with the same key the first one counts."""
    return dict(reversed(_SHOW_MAP.findall(shown)))


def _send(process: Process, commands: Iterable[str]) -> None:
    remaining = iter(commands)
    while batch := list(islice(remaining, _AT_ONCE)):
        process.ask(*batch)


def _streams(process: Process, keys: Collection[str]) -> Iterator[str]:
    """Yield the ids of the streams that use one of these keys."""
    connected = _INSIDE.findall(process.ask("show table live"))
    addresses = {address for key, address in connected if key in keys}
    if addresses:
        for stream, address in _STREAM.findall(process.ask("show sess")):
            if address in addresses:
                yield stream
