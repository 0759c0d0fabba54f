"""Notebooks from terminal and SSH, users' settings of Jupyter's, and kernels of other kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster
from tests.support.neighbours import ports_of_alice
from tests.support.ssh_access import client_of, open_ssh

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "one",
            "metadata": {},
            "outputs": [],
            "source": "print(6 * 7)",
        }
    ],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}
EXECUTE = "jupyter nbconvert --to notebook --execute n.ipynb --output done.ipynb"
CONSOLE = "echo 'print(6*7, \"said\")' | jupyter run"
COUNT = """grep -c '"42' done.ipynb"""
"""A cell's output; the times of its execution may have the number in them."""
# Knows only TCP: a kernel whose answers are ipykernel's, without the guard that refuses ports.
TCP_ONLY = """
import json, os, runpy, sys
told = json.load(open(sys.argv[1]))
if told["transport"] != "tcp":
    sys.exit("this kernel knows only tcp")
import ipykernel.kernelapp
ipykernel.kernelapp._slipway = True
sys.argv = ["ipykernel_launcher", "-f", sys.argv[1]]
runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
"""
ADDRESSES = "import json, socket; print(json.dumps([name for _, name in socket.if_nameindex()]))"


def home_of(session: Json) -> str:
    """The session's own home on the cluster."""
    return f"/home/alice/.slipway/sessions/{session['id']}/home"


def write(cluster: Cluster, path: str, text: str) -> None:
    """Write a file as alice could."""
    cluster.run("login", "mkdir", "-p", path.rpartition("/")[0], user="alice")
    cluster.run("login", "tee", path, user="alice", stdin=text)


def works_in(terminal: Terminal) -> None:
    """A notebook is executed, and jupyter_client's own program runs a line in a kernel."""
    assert "status=0" in terminal.run(f"rm -f done.ipynb; {EXECUTE}; echo status=$?", 120)
    assert "cells=1" in terminal.run(f"echo cells=$({COUNT})")
    assert "42 said" in terminal.run(CONSOLE, 120)


def test_notebooks_run_in_the_terminal_before_and_after_jupyterlab_was_opened(
    alice: Api, cluster: Cluster
) -> None:
    """After that, they ended with "Kernel died before replying to kernel_info"."""
    session = alice.running()
    write(cluster, f"{home_of(session)}/n.ipynb", json.dumps(NOTEBOOK))
    terminal = Terminal(alice.open(session["id"], "terminal"))
    works_in(terminal)
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert kernel.run("print(1)").text == "1\n"
    works_in(terminal)
    assert len(ports_of_alice(cluster, session["node"])) == 1, "only the gateway's"
    kernel.close()


def test_notebooks_run_over_ssh(alice: Api, cluster: Cluster, tmp_path: Path) -> None:
    session = alice.running()
    write(cluster, f"{home_of(session)}/n.ipynb", json.dumps(NOTEBOOK))
    client = client_of(alice, open_ssh(alice, session["id"]), tmp_path)
    done = client.ssh(f"{EXECUTE} && {COUNT}")
    assert done.stdout.split()[-1:] == [b"1"], done.stderr


def test_no_kernel_of_another_program_has_a_port(alice: Api, cluster: Cluster) -> None:
    """While it runs: another user of the node could listen to its output."""
    session = alice.running()
    text = json.dumps(NOTEBOOK).replace("print(6 * 7)", "import time; time.sleep(20); print(42)")
    write(cluster, f"{home_of(session)}/n.ipynb", text)
    terminal = Terminal(alice.open(session["id"], "terminal"))
    wait = "until pgrep -f ipykernel_launcher >/dev/null; do sleep 0.2; done; sleep 3; echo up=$?"
    assert "up=0" in terminal.run(f"({EXECUTE} &) ; {wait}", 120)
    assert len(ports_of_alice(cluster, session["node"])) == 1


SETTINGS = """
c.ServerApp.base_url = '/me/'
c.ServerApp.certfile = '/nowhere/cert.pem'
c.PasswordIdentityProvider.hashed_password = 'argon2:secret'
c.ServerApp.tornado_settings = {'headers': {'X-Mine': 'yes'}, 'ws_ping_interval': 30}
"""


def test_users_settings_are_merged_and_what_is_not_used_is_said(
    alice: Api, cluster: Cluster
) -> None:
    """Before: ready, and then 404 or a log-in page; the dictionary was lost."""
    session = alice.running()
    write(cluster, f"{home_of(session)}/.jupyter/jupyter_server_config.py", SETTINGS)
    visitor = alice.open(session["id"], "jupyterlab")
    answer = visitor.get("/api/status")
    assert answer.status_code == 200
    assert answer.headers["x-mine"] == "yes"
    log = alice.ask("GET", f"/sessions/{session['id']}/log")["log"]
    for name in ("base_url", "certfile", "tornado_settings['ws_ping_interval']"):
        assert f"Slipway: ServerApp.{name} in your Jupyter settings is not used" in log
    assert "argon2:secret" not in log


def specification(*argv: str) -> str:
    """A kernel.json."""
    words = {"argv": [*argv, "{connection_file}"], "display_name": "Own", "language": "python"}
    return json.dumps(words)


def test_a_kernel_that_knows_only_tcp_has_a_network_of_its_own(
    alice: Api, cluster: Cluster
) -> None:
    """Before: "Disconnected", without a reason."""
    session = alice.running()
    place = f"{home_of(session)}/.local/share/jupyter/kernels/own"
    write(cluster, f"{place}/run.py", TCP_ONLY)
    argv = ["python", "/home/alice/.local/share/jupyter/kernels/own/run.py"]
    write(cluster, f"{place}/kernel.json", specification(*argv))
    kernel = Kernel(alice.open(session["id"], "jupyterlab"), language="own")
    assert kernel.value(ADDRESSES) == ["lo"]
    assert len(ports_of_alice(cluster, session["node"])) == 1
    kernel.close()


def test_a_kernel_that_does_not_start_gives_a_reason(alice: Api, cluster: Cluster) -> None:
    session = alice.running()
    place = f"{home_of(session)}/.local/share/jupyter/kernels/own"
    write(cluster, f"{place}/kernel.json", specification("sh", "-c", "exit 3"))
    visitor = alice.open(session["id"], "jupyterlab")
    visitor.get("/lab")
    answer = visitor.send("POST", "/api/kernels", json={"name": "own"})
    assert answer.status_code == 500
    assert "The kernel own does not start: it ended before it answered." in answer.text


def test_widgets_are_drawn(alice: Api) -> None:
    """JupyterLab has the other side of ipywidgets."""
    session = alice.running()
    visitor = alice.open(session["id"], "jupyterlab")
    assert "@jupyter-widgets/jupyterlab-manager" in visitor.get("/lab").text
    kernel = Kernel(visitor)
    output = kernel.run("import ipywidgets; display(ipywidgets.IntSlider(7))")
    assert "application/vnd.jupyter.widget-view+json" in output.shown
    kernel.close()


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_a_web_app_that_asks_itself_needs_no_proxy(alice: Api, name: str) -> None:
    session = alice.running(env={"http_proxy": "http://proxy.example.org:3128"})
    command = f'mkdir s; echo "${name}" > s/index.html; exec python -m http.server -d s $PORT'
    link = alice.ask("POST", f"/sessions/{session['id']}/apps/webapp", json={"asked": command})
    visitor = Visitor(link["url"])
    visitor.enter()
    assert visitor.get("/").text.strip() == "*"
