"""What runs on a node around a container."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from portal.node.batch.execute import supervisor
from portal.node.batch.execute.run import Task
from portal.node.batch.execute.supervisor import Supervisor
from portal.node.batch.request import Request


class NotForked(Exception):
    """Instead of a container."""


def test_no_thread_runs_yet_when_the_container_is_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of this process has no other thread, which may have Python's lock at that moment."""
    threads = []

    def container(*_arguments: object, **_options: object) -> None:
        threads.append(threading.active_count())
        raise NotForked

    monkeypatch.setattr(supervisor, "Container", container)
    monkeypatch.setattr(Supervisor, "launcher", lambda *_arguments: "nobody")
    request = Request()
    request.toolkit = request.image = "/dev/null"
    request.apptainer = "true"
    task = Task(request, request.text(), str(tmp_path), Supervisor(is_batch=False))
    before = threading.active_count()
    with pytest.raises(NotForked):
        task.run(["date"], set(), launcher=[], files=[], on_start=lambda _: None, shared=True)
    assert threads == [before]
