"""Runs a server's operations, four at once; others wait in a queue."""

from __future__ import annotations

import threading
import time
from collections import deque

from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.operations import request
from portal.node.file_server.operations.fetch_rules import FetchRules
from portal.node.file_server.operations.operation import CANCELLED, RUNNING, Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.operations.records import KEPT_SECONDS, Records
from portal.node.file_server.operations.work import work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from portal.node.file_server.deadlines import Deadlines
    from portal.node.file_server.roots import Roots

AT_ONCE = 4
STUCK_SECONDS = 60.0
"""An operation without progress for so long counts as hanging, and another one may start."""
MOST_THREADS = 16
MOST_WAITING = 100
MOST_KEPT = 500
MOST_LISTED, MOST_PROBLEMS_IN_LIST = 200, 10
ANSWER_SECONDS = 0.5
"""How long a reply waits for the end, so that most replies contain the result."""


class Operations:
    """Starts, lists and cancels operations."""

    def __init__(
        self,
        roots: Roots,
        deadlines: Deadlines,
        records: Records,
        rules: FetchRules = FetchRules(),  # noqa: B008  # it is frozen
    ) -> None:
        self._roots, self._deadlines, self._records = roots, deadlines, records
        self._rules = rules
        self._lock = threading.Lock()
        self._all: dict[str, Operation] = {}
        self._waiting: deque[tuple[Operation, Protected]] = deque()
        self._running: list[Operation] = []
        threading.Thread(target=self._load, daemon=True).start()

    def _load(self) -> None:
        for operation in self._records.earlier(self._roots):
            with self._lock:
                self._all[operation.id] = operation

    @property
    def is_busy(self) -> bool:
        """Whether any is running."""
        with self._lock:
            return bool(self._running)

    def start(self, data: Mapping[str, Any]) -> Operation:
        """Start the operation of a JSON object, and wait a moment for its end; raises Refused."""
        operation = request.read(data, self._rules)
        protected = Protected(self._roots, self._deadlines)
        areas = {location.root for location in (operation.to, *operation.items) if location}
        self._deadlines.call(
            " ".join(sorted(areas)), lambda: request.check(self._roots, operation, protected)
        )
        with self._lock:
            self._prune()
            if len(self._waiting) >= MOST_WAITING:
                raise Refused(503, "busy", "Too many operations are waiting. Try again later.")
        self._records.begin(operation)
        with self._lock:
            self._all[operation.id] = operation
            self._waiting.append((operation, protected))
            self._launch()
        operation.over.wait(ANSWER_SECONDS)
        return operation

    def _launch(self) -> None:
        while self._waiting and len(self._running) < MOST_THREADS:
            stuck = sum(each.silence > STUCK_SECONDS for each in self._running)
            if len(self._running) - stuck >= AT_ONCE:
                return
            operation, protected = self._waiting.popleft()
            operation.state, operation.advanced = RUNNING, time.monotonic()
            self._running.append(operation)
            threading.Thread(target=self._run, args=(operation, protected), daemon=True).start()

    def _run(self, operation: Operation, protected: Protected) -> None:
        try:
            work(operation, self._roots, protected, self._rules)
            self._records.end(operation)
        finally:
            with self._lock:
                self._running.remove(operation)
                self._launch()

    def _prune(self) -> None:
        ended = [operation for operation in self._all.values() if operation.ended]
        ended.sort(key=lambda operation: operation.ended or 0.0)
        late = time.time() - KEPT_SECONDS
        for number, operation in enumerate(ended):
            if (operation.ended or 0.0) < late or number < len(ended) - MOST_KEPT:
                del self._all[operation.id]
                self._forget(operation)

    def _forget(self, operation: Operation) -> None:
        forget = threading.Thread(target=self._records.forget, args=(operation,), daemon=True)
        forget.start()

    def list(self) -> list[dict[str, Any]]:
        """Operations that are running or ended within the last hour, the newest first."""
        with self._lock:
            self._prune()
            self._launch()
            operations = sorted(
                self._all.values(), key=lambda operation: operation.started, reverse=True
            )
        return [operation.as_json(MOST_PROBLEMS_IN_LIST) for operation in operations[:MOST_LISTED]]

    def get(self, number: str) -> Operation:
        """The operation of an id; raises Refused."""
        with self._lock:
            operation = self._all.get(number)
        if operation is None:
            raise no_such()
        return operation

    def cancel(self, number: str) -> Operation:
        """Cancel an operation, and wait a moment for its end; raises Refused."""
        operation = self.get(number)
        with self._lock:
            waiting = [each for each in self._waiting if each[0] is operation]
            if waiting:
                self._waiting.remove(waiting[0])
        operation.cancel()
        if waiting:
            operation.end(CANCELLED, "Cancelled before it began.")
            self._records.end(operation)
        if operation.ended is None:
            operation.over.wait(ANSWER_SECONDS)
        return operation
