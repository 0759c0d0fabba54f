"""Apps in use while daemons are killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Visitor, unanswered
from tests.support.cluster import CTL, Cluster


class Killer:
    """kill -9 of the portal's daemons and all their processes, prepared so as to be quick."""

    SCRIPT = """
    for name; do
        while pid=$(supervisorctl pid "$name"); ! [ "$pid" -gt 0 ] 2>/dev/null; do sleep 0.1; done
        groups="$groups -$pid"
    done
    echo armed; read -r go; kill -9 -- $groups && echo done"""

    def __init__(self, cluster: Cluster, *daemons: str) -> None:
        words = ["exec", "portal", "--", "bash", "-c", self.SCRIPT, "bash", *daemons]
        self._shell = subprocess.Popen(
            [str(CTL), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=cluster.environment(),
        )
        assert self._shell.stdout
        assert self._shell.stdout.readline() == "armed\n"

    def strike(self) -> None:
        """Kill."""
        output, _ = self._shell.communicate("\n", timeout=30)
        assert output == "done\n"


@contextmanager
def watched_app(visitor: Visitor) -> Iterator[list[str]]:
    """Use an app all the time; the list collects the failures."""
    wrong: list[str] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(0.1):
            if trouble := unanswered(lambda: visitor.get("/api/status", timeout=5)):
                wrong.append(f"{time.strftime('%X')} {trouble}")

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield wrong
    finally:
        stop.set()
        thread.join()


class OpenApps:
    """A notebook and a terminal in use."""

    def __init__(self, api: Api, session: str) -> None:
        self.lab = api.open(session, "jupyterlab")
        self.kernel = Kernel(self.lab)
        self.kernel.run("kept = 'treasure'")
        self.shell = api.open(session, "terminal")
        self.terminal = Terminal(self.shell)
        self.terminal.run("kept=treasure")

    def check_unchanged(self) -> None:
        """Fail unless kernel and shell are the same as before, over the open connections."""
        assert self.kernel.run("print(kept)").text == "treasure\n"
        assert "it is treasure" in self.terminal.run('echo "it is $kept"')

    def reload(self) -> None:
        """Reload both windows, with their cookies."""
        self.kernel.connect()
        self.terminal.close()
        self.terminal = Terminal(self.shell)
