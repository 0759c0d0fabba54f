"""gunicorn's workers: `--worker-class portal.web.gunicorn_worker.PortalWorker`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.config.web import RUNNERS_SOCKET, runner_threads


class PortalWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A worker with threads for the runners' calls alone.

    Pages occupy all other threads under load, and a call that waits for them is refused by HAProxy.
    """

    def init_process(self) -> None:
        """Create the runners' threads."""
        self._for_runners = ThreadPoolExecutor(runner_threads(self.cfg.threads))
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Handle a request in a thread of its kind."""
        is_call = PurePath(str(conn.server)).name == RUNNERS_SOCKET
        pool = self._for_runners if is_call else self.tpool
        handled = pool.submit(self.handle, conn)
        handled.add_done_callback(
            lambda done: self.method_queue.defer(self.finish_request, conn, done)
        )
