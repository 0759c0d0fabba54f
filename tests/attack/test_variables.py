"""Variables and settings files that would disable a protection, tested with a real kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.apps import Kernel
from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster, wait_for
from tests.support.neighbours import ports_of_alice

DEBUGGER = """
import json, sys
try:
    import debugpy
    there = True
except ImportError:
    there = False
print(json.dumps({"debugpy": there, "supported": get_ipython().kernel.debugger is not None
    if hasattr(get_ipython().kernel, "debugger") else False}))
"""
CHILD = """
import multiprocessing
def child():
    print("said by a child", flush=True)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
"""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("IPYTHONDIR", "Jupyter's"),
        ("IPYTHON_ANYTHING", "Jupyter's"),
        ("JUPYTER_CONFIG_DIR", "Jupyter's"),
        ("JUPYTER_CONFIG_PATH", "Jupyter's"),
        ("JUPYTER_NO_CONFIG", "Jupyter's"),
        ("JUPYTER_TOKEN", "Jupyter's"),
        ("JUPYTERHUB_API_TOKEN", "Jupyter's"),
        ("SPANK_X", "Slurm's"),
        ("PYTHONSTARTUP", "Python's"),
        ("TMUX_ANYTHING", "terminal's"),
        ("TTYD_ANYTHING", "terminal's"),
    ],
)
def test_variables_that_disable_a_protection_are_refused_by_name(
    alice: Api, name: str, word: str
) -> None:
    """E38, 40, 41, 44: got 201 before."""
    body = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    before = len(alice.list())
    answer = alice("POST", "/sessions", json=body | {"env": {name: "/nonexistent"}})
    if answer.status_code == 201:
        alice.launched += [session["id"] for session in answer.json()["sessions"]]
    assert answer.status_code == 422
    assert f"{name} cannot be set" in answer.text
    assert word in answer.text
    assert len(alice.list()) == before


class Room:
    """A session of alice's whose JupyterLab can be restarted."""

    def __init__(self, cluster: Cluster, api: Api, session: Json) -> None:
        self.cluster = cluster
        self.api = api
        self.session = session
        self.home = f"/home/alice/.slipway/sessions/{session['id']}/home"

    def write(self, path: str, text: str) -> None:
        """Write a file in her session's home, as she could."""
        folder = f"{self.home}/{path}".rpartition("/")[0]
        self.cluster.run("login", "mkdir", "-p", folder, user="alice")
        self.cluster.run("login", "tee", f"{self.home}/{path}", user="alice", stdin=text)

    def remove(self, path: str) -> None:
        """Remove the file."""
        self.cluster.run("login", "rm", "-rf", f"{self.home}/{path}", user="alice")

    def lab(self) -> Visitor:
        """JupyterLab, started now."""
        self.stop()
        return self.api.open(self.session["id"], "jupyterlab")

    def stop(self) -> None:
        """End JupyterLab with all its kernels, so that the next one rereads its files."""
        script = (
            "pkill -u alice -f jupyter-lab; while pgrep -u alice -f jupyter-lab; do sleep 0.1; done"
        )
        self.cluster.shell(self.session["node"], script, check=False)
        wait_for("JupyterLab to have ended", lambda: self.state() != "ready")

    def state(self) -> str:
        """JupyterLab's state."""
        apps = self.api.get(self.session["id"])["apps"]
        return next(str(app.get("state")) for app in apps if app["name"] == "jupyterlab")

    def ports(self) -> list[int]:
        """All her TCP ports except the gateway's."""
        found = ports_of_alice(self.cluster, self.session["node"])
        assert found, "not even the gateway is listening"
        return found[1:] if len(found) == 1 else found


@pytest.fixture(scope="module")
def room(cluster: Cluster, researcher: Api) -> Room:
    """A session with permitted variables that resemble Jupyter's own."""
    env = {
        "PATH": "/usr/games",
        "PYTHONPATH": "/nonexistent",
        "XDG_CONFIG_HOME": "/tmp/config",
        "PORT": "9",
        "HOST": "0.0.0.0",
    }
    return Room(cluster, researcher, researcher.running(env=env))


@pytest.fixture(autouse=True)
def clean(room: Room) -> Iterator[None]:
    """Each test starts with a home without settings."""
    yield
    for path in (".ipython", ".jupyter", ".local"):
        room.remove(path)


def works_and_listens_nowhere(room: Room, kernel: Kernel) -> None:
    """The kernel works, and no neighbour on the node can reach it."""
    assert "said by a child" in kernel.run(CHILD).text
    assert kernel.value(DEBUGGER) == {"debugpy": False, "supported": False}
    assert room.ports() == []


def test_permitted_variables_do_no_harm(room: Room) -> None:
    """41, 44: PATH keeps its first entries, and everything works."""
    kernel = Kernel(room.lab())
    path = kernel.value("import json, os; print(json.dumps(os.environ['PATH']))")
    assert path.startswith("/usr/games:")
    works_and_listens_nowhere(room, kernel)
    kernel.close()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            ".jupyter/jupyter_server_config.py",
            "c.KernelManager.transport = 'tcp'\n"
            "c.AsyncKernelManager.transport = 'tcp'\n"
            "c.AsyncIOLoopKernelManager.transport = 'tcp'\n"
            "c.ServerKernelManager.transport = 'tcp'\n"
            "c.KernelManager.ip = '127.0.0.1'\n"
            "c.ServerApp.ip = '0.0.0.0'\nc.ServerApp.port = 18888\nc.ServerApp.sock = ''\n"
            "c.ServerApp.kernel_manager_class = "
            "'jupyter_server.services.kernels.kernelmanager.MappingKernelManager'\n"
            "other = 'jupyter_client.ioloop.IOLoopKernelManager'\n"
            "c.MultiKernelManager.kernel_manager_class = other\n"
            "c.MappingKernelManager.kernel_manager_class = other\n"
            "c.AsyncMappingKernelManager.kernel_manager_class = other\n",
        ),
        (
            ".jupyter/jupyter_config.json",
            '{"KernelManager": {"transport": "tcp", "ip": "0.0.0.0"}}',
        ),
        (
            ".ipython/profile_default/ipython_config.py",
            "c.IPKernelApp.transport = 'tcp'\nc.IPKernelApp.ip = '0.0.0.0'\n",
        ),
        (
            ".ipython/profile_default/ipython_kernel_config.py",
            "c.IPKernelApp.transport = 'tcp'\nc.IPKernelApp.ip = '0.0.0.0'\n",
        ),
    ],
)
def test_settings_in_files_do_not_open_a_port(room: Room, path: str, text: str) -> None:
    """E38 by files: settings made in good faith disable no protection by accident."""
    room.stop()
    for folder in (".ipython", ".jupyter"):
        room.remove(folder)
    room.write(path, text)
    kernel = Kernel(room.lab())
    works_and_listens_nowhere(room, kernel)
    kernel.close()


def start(visitor: Visitor, name: str) -> Json:
    """Start a kernel by the name of its specification."""
    visitor.get("/lab")
    answer = visitor.send("POST", "/api/kernels", json={"name": name})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


def specification(*argv: str) -> str:
    """A kernel.json."""
    words: dict[str, Any] = {"argv": [*argv, "{connection_file}"], "display_name": "Own"}
    return json.dumps(words | {"language": "python"})


PLACE = ".local/share/jupyter/kernels/own"
BACK = """#!/bin/sh
exec python -m ipykernel_launcher -f "$1"
"""
OPENS = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
time.sleep(600)
"""
LISTENS = """
import socket, sys
sys.kept = socket.create_server(("127.0.0.1", 0))
"""


def own_kernel(room: Room, *argv: str, **files: str) -> Visitor:
    """JupyterLab with a custom kernel."""
    room.stop()
    room.write(f"{PLACE}/kernel.json", specification(*argv))
    for name, text in files.items():
        room.write(f"{PLACE}/{name}", text)
    return room.lab()


def test_a_wrapped_kernel_listens_nowhere(room: Room) -> None:
    """As many sites write them: a script that loads modules and executes ipykernel."""
    place = f"/home/alice/{PLACE}"
    visitor = own_kernel(room, "sh", f"{place}/wrap", wrap=BACK)
    kernel = Kernel(visitor, start(visitor, "own")["id"])
    works_and_listens_nowhere(room, kernel)
    kernel.close()


def test_a_kernel_that_listens_is_ended_with_a_reason(room: Room, researcher: Api) -> None:
    """E38: a kernel that cannot be secured does not start."""
    place = f"/home/alice/{PLACE}"
    visitor = own_kernel(room, "python", f"{place}/run.py", **{"run.py": OPENS})
    start(visitor, "own")
    ends_with(room, researcher, "the kernel own is ended: it listens on TCP port")


def test_a_kernel_that_would_listen_does_not_start_and_logs_why(
    room: Room, researcher: Api
) -> None:
    """E38: this is checked before the kernel accepts connections."""
    room.stop()
    room.write(".ipython/profile_default/ipython_kernel_config.py", LISTENS)
    start(room.lab(), "python3")
    words = "this kernel does not start, since it would listen on TCP port"
    ends_with(room, researcher, words)


def ends_with(room: Room, researcher: Api, words: str) -> None:
    """The session's log has the reason, and there is no port."""
    log = f"/sessions/{room.session['id']}/log"
    wait_for("a reason", lambda: words in researcher.ask("GET", log)["log"])
    room.remove(".ipython")
    wait_for("no port", lambda: room.ports() == [], 30)
