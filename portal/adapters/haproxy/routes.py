"""HAProxy's route map, changed through its runtime socket without a reload."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice

from portal.adapters.haproxy.map_files import BACKGROUND, CANARY, HUB, ROUTES, MapFiles
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
_AT_ONCE = 50
"""Commands per message: HAProxy reads lines of up to 16 KB."""


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

    def exclusively(self) -> AbstractContextManager[None]:
        return self._files.exclusively()

    def add(self, key: str, target: str) -> None:
        if not _KEY.fullmatch(key) or not _TARGET.fullmatch(target):
            raise ValueError("a route that HAProxy would misread")
        self._set(ROUTES, key, target)

    def _set(self, name: str, key: str, value: str) -> None:
        with self.exclusively():
            with self._changing(name):
                self._files.set(name, key, value)
            process, map = self._haproxy.newest(), f"{self._run}/{name}"
            if "not found" in process.ask(f"set map {map} {key} {value}"):
                process.ask(f"add map {map} {key} {value}")

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
        self._set(HUB, path, key)

    def set_paths(self, paths: Mapping[str, str]) -> None:
        with self.exclusively():
            process = self._haproxy.newest()
            current, stored = self._shown(process, HUB), self._files.read(HUB)
            if not stored.keys() <= paths.keys():
                self._write(HUB, {path: stored[path] for path in stored.keys() & paths.keys()})
            dropped = current.keys() - paths.keys()
            _send(process, (f"del map {self._run}/{HUB} {path}" for path in dropped))
            for path, key in paths.items():
                if not current.get(path) == stored.get(path) == key:
                    self.add_path(path, key)

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
            _send(process, (f"add map {self._run}/{BACKGROUND} {path} 1" for path in entries))

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
            stored = self._files.read(ROUTES)
            current = self._shown(self._haproxy.newest(), ROUTES)
        # Entries that only the file or only the process has count as wrong: no route has "".
        entries = dict.fromkeys([*connected, *stored], "") | current
        entries |= dict.fromkeys(current.keys() - stored.keys(), "")
        entries.pop(CANARY, None)
        return entries

    def _shown(self, process: Process, name: str) -> dict[str, str]:
        """The entries of a map in this process's memory."""
        lines = process.ask(f"show map {self._run}/{name}").splitlines()
        entries = (line.split() for line in lines if line.startswith("0x"))
        return {fields[1]: fields[2] for fields in entries if len(fields) == 3}

    def fill(self, routes: Mapping[str, str]) -> None:
        with self.exclusively():
            self._write(ROUTES, {CANARY: "1", **routes})
            process, map = self._haproxy.newest(), f"{self._run}/{ROUTES}"
            current = self._shown(process, ROUTES)
            _send(
                process,
                (
                    f"{'set' if key in current else 'add'} map {map} {key} {target}"
                    for key, target in routes.items()
                    if current.get(key) != target
                ),
            )
            # Last: after a crash before this line the map still counts as lost.
            if CANARY not in current:
                process.ask(f"add map {map} {CANARY} 1")


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
