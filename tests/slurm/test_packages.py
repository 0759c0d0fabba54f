"""Packages that users install, and the space for temporary files, in real sessions.

No package index is needed: what is installed is written by the tests.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.ssh_access import client_of, open_ssh

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "harbour-pilot"
version = "1.0"
"""
# A build backend without any other package, since nodes need not reach an index.
BACKEND = """
import zipfile
FILES = {
    "harbour_pilot.py": "answer = 42\\n",
    "METADATA": "Metadata-Version: 2.1\\nName: harbour-pilot\\nVersion: 1.0\\n",
    "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "RECORD": "",
}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "harbour_pilot-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        for file, text in FILES.items():
            place = "" if file.endswith(".py") else "harbour_pilot-1.0.dist-info/"
            wheel.writestr(place + file, text)
    return name
"""
USE = "import harbour_pilot; print(harbour_pilot.answer)"
FIND = "import json, harbour_pilot; print(json.dumps(harbour_pilot.__file__))"


@pytest.fixture
def folder(alice: Api) -> str:
    """A new storage folder of alice's."""
    name = f"p{uuid.uuid4().hex[:8]}"
    alice.ask("POST", "/folders", 201, json={"name": name})
    return name


def install(api: Api, session: str, *options: str) -> str:
    """Install the package in the terminal, from sources in the session's /tmp; what pip printed."""
    kernel = Kernel(api.open(session, "jupyterlab"))
    for name, text in (("pyproject.toml", PROJECT), ("backend.py", BACKEND)):
        code = "import pathlib; place = pathlib.Path('/tmp/pilot'); place.mkdir(exist_ok=True)"
        assert not kernel.run(f"{code}\n(place / {name!r}).write_text({text!r})").error
    kernel.close()
    terminal = Terminal(api.open(session, "terminal"))
    words = " ".join(options)
    printed = terminal.run(f"pip install --no-build-isolation {words} /tmp/pilot 2>&1 | cat", 120)
    terminal.close()
    # As one line, whatever the window's width.
    return " ".join(printed.split())


@pytest.mark.parametrize("options", [[], ["--user"]])
def test_what_is_installed_is_in_the_folder_and_in_the_next_session(
    alice: Api, folder: str, options: list[str]
) -> None:
    """Before: a read-only file system, and user site-packages that are not visible."""
    first = alice.running(mounts=[folder])
    printed = install(alice, first["id"], *options)
    assert "Successfully installed harbour-pilot-1.0" in printed
    assert "end with this session" not in printed
    terminal = Terminal(alice.open(first["id"], "terminal"))
    assert "42" in terminal.run(f"python -c '{USE}'", 60)
    kernel = Kernel(alice.open(first["id"], "jupyterlab"))
    place = kernel.value(FIND)
    assert f"/{folder}/.slipway-packages/python-3.13/" in place
    kernel.close()
    alice.stop(first["id"])

    second = alice.running(mounts=[folder])
    kernel = Kernel(alice.open(second["id"], "jupyterlab"))
    assert kernel.value(FIND) == place
    kernel.close()
    terminal = Terminal(alice.open(second["id"], "terminal"))
    assert "42" in terminal.run(f"ipython -c '{USE}'", 60)
    printed = terminal.run("pip uninstall --yes harbour-pilot 2>&1 | cat", 60)
    assert "Successfully uninstalled harbour-pilot-1.0" in printed


def test_over_ssh_they_are_found_as_well(alice: Api, folder: str, tmp_path: Path) -> None:
    session = alice.running(mounts=[folder])
    install(alice, session["id"])
    client = client_of(alice, open_ssh(alice, session["id"]), tmp_path)
    assert client.ssh(f"python -c '{USE}'").stdout.strip() == b"42"
    told = client.ssh("echo $SSH_CONNECTION").stdout.split()
    assert len(told) == 4 and b"UNKNOWN" not in told


def test_without_a_folder_pip_says_that_they_end_with_the_session(alice: Api) -> None:
    session = alice.running()
    assert "these packages end with this session" in install(alice, session["id"])
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert kernel.run(USE).text.strip() == "42"
    kernel.close()


def test_no_package_breaks_jupyterlab(alice: Api, folder: str) -> None:
    """A module of the user's hides one that JupyterLab is made of."""
    session = alice.running(mounts=[folder])
    terminal = Terminal(alice.open(session["id"], "terminal"))
    site = "$(python -c 'import site; print(site.getusersitepackages())')"
    terminal.run(f"echo 'raise SystemExit(7)' > {site}/tornado.py", 60)
    assert "hidden=7" in terminal.run("python -c 'import tornado'; echo hidden=$?", 60)
    visitor = alice.open(session["id"], "jupyterlab")
    assert visitor.get("/lab").status_code == 200
    assert "SystemExit" not in visitor.get("/api").text


def test_an_environment_of_the_users_with_its_kernel_is_there_next_time(
    alice: Api, folder: str
) -> None:
    first = alice.running(mounts=[folder])
    terminal = Terminal(alice.open(first["id"], "terminal"))
    make = f"python -m venv --system-site-packages --without-pip ~/{folder}/own"
    terminal.run(f"{make} && ~/{folder}/own/bin/python -m ipykernel install --user --name own", 120)
    alice.stop(first["id"])
    second = alice.running(mounts=[folder])
    kernel = Kernel(alice.open(second["id"], "jupyterlab"), language="own")
    prefix = kernel.value("import json, sys, numpy; print(json.dumps(sys.prefix))")
    assert prefix.endswith(f"/{folder}/own")
    kernel.close()


def test_a_folder_that_others_may_write_to_is_not_used(
    alice: Api, folder: str, cluster: Cluster
) -> None:
    """What lies there would run as alice."""
    cluster.shell("login", f"chmod 777 ~/storage/{folder}", "alice")
    session = alice.running(mounts=[folder])
    terminal = Terminal(alice.open(session["id"], "terminal"))
    assert "mine=session" in terminal.run("echo mine=$SLIPWAY_PACKAGES")
    assert "files=0" in terminal.run(f"echo files=$(ls -A ~/{folder} | wc -l)")


FILL = "head -c 80M /dev/zero > /var/tmp/scratch; stat -c size=%s /var/tmp/scratch"
SORT = """
import json, sqlite3
base = sqlite3.connect("big.db")
base.execute("create table t (a text)")
rows = ((str(n * 7919 % 400009) * 40,) for n in range(400000))
base.executemany("insert into t values (?)", rows)
base.commit()
base.execute("create index i on t (a)")
print(json.dumps(base.execute("select count(*) from t").fetchone()[0]))
"""


def test_temporary_files_have_the_nodes_space_and_close_nothing(alice: Api, folder: str) -> None:
    """Before, /var/tmp had 64 MB, and whoever filled it had no new terminal, kernel or SSH."""
    session: Json = alice.running(mounts=[folder], resources={"cpus": 1, "memory": "700m"})
    terminal = Terminal(alice.open(session["id"], "terminal"))
    assert "size=83886080" in terminal.run(FILL, 60)
    terminal.close()
    word = uuid.uuid4().hex
    again = Terminal(alice.open(session["id"], "terminal"))
    assert word in again.run(f"echo {word}")
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert not kernel.run(f"import os; os.chdir(os.path.expanduser('~/{folder}'))").error
    assert json.loads(kernel.run(SORT, 120).text) == 400000
    kernel.close()


def test_what_a_session_leaves_on_the_node_is_nothing(alice: Api, cluster: Cluster) -> None:
    session = alice.running()
    terminal = Terminal(alice.open(session["id"], "terminal"))
    terminal.run("echo x > /tmp/mine; echo x > /var/tmp/mine")
    look = "ls -d /tmp/slipway-session.* /var/tmp/slipway-session.* 2>/dev/null | wc -l"

    def left() -> int:
        return int(cluster.shell(session["node"], look))

    assert left() >= 1
    before = left()
    alice.stop(session["id"])
    wait_for("the folder to be deleted", lambda: left() < before)
