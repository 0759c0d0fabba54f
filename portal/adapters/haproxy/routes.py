"""HAProxy's route map, changed through its runtime socket without a reload."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from portal.adapters.haproxy.runtime_api import Haproxy, Process
from portal.core.interfaces.systems import Routes
from portal.core.session.idle import Traffic

CANARY = "slipway"
"""An entry that exists as long as HAProxy has not lost the map."""
_KEY = re.compile(r"([a-z0-9]+|~files)\.([0-9a-f]{64}|public|ssh|hub)")
_TARGET = re.compile(r"[0-9a-fA-F.:]+@[0-9]+@[a-z0-9.-]+")
_PATH = re.compile(r"[A-Za-z0-9_./~%+@=-]+")
_HUB_PATH = re.compile(r"/[A-Za-z0-9_./~%@!$&*+=-]*/")
_INSIDE = re.compile(r"key=([^|\s]+)\|(\S+) use=[1-9]")
_STREAM = re.compile(r"^(0x[0-9a-f]+): proto=\S+ src=(\S+) ", re.MULTILINE)
_SENT = re.compile(r"key=(\S+) .*http_req_cnt=(\d+) bytes_in_cnt=(\d+)")
_AT_ONCE = 50
"""Commands per message: HAProxy reads lines of up to 16 KB."""


class HaproxyRoutes(Routes):
    """Routes over HAProxy's runtime API (management guide, section 9.3)."""

    def __init__(self, run_directory: str) -> None:
        self._haproxy = Haproxy(run_directory)
        self._map = f"{run_directory}/routes.map"
        self._background = f"{run_directory}/background.map"
        self._hub = f"{run_directory}/hub.map"

    def add(self, key: str, target: str) -> None:
        if not _KEY.fullmatch(key) or not _TARGET.fullmatch(target):
            raise ValueError("a route that HAProxy would misread")
        self._set(self._map, key, target)

    def _set(self, map: str, key: str, value: str) -> None:
        if "not found" in self._haproxy.ask(f"set map {map} {key} {value}"):
            self._haproxy.ask(f"add map {map} {key} {value}")

    def add_path(self, path: str, key: str) -> None:
        if not _HUB_PATH.fullmatch(path) or not _KEY.fullmatch(key):
            raise ValueError("a path that HAProxy would misread")
        self._set(self._hub, path, key)

    def set_paths(self, paths: Mapping[str, str]) -> None:
        lines = self._haproxy.ask(f"show map {self._hub}").splitlines()
        entries = (line.split() for line in lines if line.startswith("0x"))
        known = {fields[1]: fields[2] for fields in entries if len(fields) == 3}
        _send(
            self._haproxy, (f"del map {self._hub} {path}" for path in known.keys() - paths.keys())
        )
        for path, key in paths.items():
            if known.get(path) != key:
                self.add_path(path, key)

    def remove(self, *keys: str) -> None:
        if not all(_KEY.fullmatch(key) for key in keys):
            raise ValueError("a key that HAProxy would misread")
        if not keys:
            return
        # First the map, then open connections: those opened in between are already refused.
        deletions = [f"del map {self._map} {key}" for key in keys]
        _send(self._haproxy, deletions)
        for process in self._haproxy.processes():
            _send(process, (f"shutdown session {it}" for it in _streams(process, frozenset(keys))))

    def traffic(self) -> dict[str, Traffic]:
        requests: dict[str, int] = defaultdict(int)
        sent: dict[str, int] = defaultdict(int)
        for process in self._haproxy.processes():
            for name, count, size in _SENT.findall(process.ask("show table traffic")):
                requests[name] += int(count)
                sent[name] += int(size)
        return {name: Traffic(requests[name], sent[name]) for name in requests}

    def set_background_requests(self, paths: Collection[str]) -> None:
        if not all(_PATH.fullmatch(path) for path in paths):
            raise ValueError("a path that HAProxy would misread")
        self._haproxy.ask(f"clear map {self._background}")
        _send(self._haproxy, (f"add map {self._background} {path} 1" for path in sorted(paths)))

    def is_lost(self) -> bool:
        return "value=" not in self._haproxy.ask(f"get map {self._map} {CANARY}")

    def entries(self) -> dict[str, str]:
        inside = {
            key
            for process in self._haproxy.processes()
            for key, _address in _INSIDE.findall(process.ask("show table live"))
        }
        lines = self._haproxy.ask(f"show map {self._map}").splitlines()
        entries = (line.split() for line in lines)
        known = {fields[1]: fields[2] for fields in entries if len(fields) == 3}
        known.pop(CANARY, None)
        return dict.fromkeys(inside, "") | known

    def fill(self, routes: Mapping[str, str]) -> None:
        for key, target in routes.items():
            self.add(key, target)
        # Last, so that after a crash before this line the map still counts as lost.
        self._haproxy.ask(f"add map {self._map} {CANARY} 1")


def _send(process: Haproxy | Process, commands: Iterable[str]) -> None:
    remaining = iter(commands)
    while batch := list(islice(remaining, _AT_ONCE)):
        process.ask(*batch)


def _streams(process: Process, keys: Collection[str]) -> Iterator[str]:
    """The streams that use one of these keys, by address."""
    inside = _INSIDE.findall(process.ask("show table live"))
    addresses = {address for key, address in inside if key in keys}
    if addresses:
        for stream, address in _STREAM.findall(process.ask("show sess")):
            if address in addresses:
                yield stream
