"""The site's apps in real sessions: apps per image, TensorBoard, any web app, an invalid file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from tests.support.apps import Kernel
from tests.support.client import Api, Json, Visitor
from tests.support.cluster import Cluster, wait_for

TINY = {"cpus": 1, "memory": "400m"}
EVERYWHERE = {"terminal", "webapp"}
JUPYTER = {"jupyterlab", "notebook"}
SYSTEMS = [
    ("python", "3.13", {"tensorboard", *JUPYTER}),
    ("python", "3.11", JUPYTER),
    ("debian", "12", set()),
]
"""Environment and version, and the apps that only some images can run."""
SPECIAL = {"tensorboard", "code-server", *JUPYTER}

# Three points of one curve, written by TensorBoard's own library.
CURVE = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("runs/first")
for step in range(3):
    value = Summary.Value(tag="loss", simple_value=1 / 2**step)
    writer.add_event(Event(step=step, wall_time=1e9 + step, summary=Summary(value=[value])))
writer.close()
"""

# Alice's ports on the node as bob sees them, and whether he can connect to the apps' port.
PROBE_PORTS = """
import json, socket
listening = []
for line in open("/proc/net/tcp").readlines()[1:] + open("/proc/net/tcp6").readlines()[1:]:
    fields = line.split()
    if fields[3] == "0A" and fields[7] == "1001":
        listening.append(int(fields[1].rpartition(":")[2], 16))
stream = socket.socket()
stream.settimeout(5)
print(json.dumps([sorted(set(listening)), stream.connect_ex(("127.0.0.1", 8080))]))
"""


def enter(api: Api, session: str, app: str, asked: str) -> Visitor:
    """Open an app that has a prompt, and wait until it responds."""
    link = api.ask("POST", f"/sessions/{session}/apps/{app}", json={"asked": asked})
    visitor = Visitor(link["url"])
    visitor.enter()
    return visitor


@pytest.mark.parametrize(("environment", "version", "special"), SYSTEMS)
def test_a_session_offers_what_its_image_can_run(
    admin: Api, environment: str, version: str, special: set[str]
) -> None:
    running = admin.running(environment=environment, version=version, resources=TINY)
    apps = {app["name"] for app in running["apps"]}
    assert apps & SPECIAL == special
    assert apps >= EVERYWHERE

    # An administrator's session is trusted for everybody: from then on the launch form knows its
    # apps; each of the portal's processes within ten seconds.
    def known() -> bool:
        found = {
            (one["name"], image["version"]): {app["name"] for app in image["apps"]}
            for one in admin.ask("GET", "/environments")["environments"]
            for image in one["versions"]
        }
        # JupyterHub's server is offered where an image has it, and runs in JupyterHub's sessions.
        return found[environment, version] - {"jupyterhub"} == apps

    wait_for("the form knows the apps", known)
    missing = next(iter({*SPECIAL} - special))
    assert admin("POST", f"/sessions/{running['id']}/apps/{missing}").status_code == 404


def test_tensorboard_shows_a_curve(researcher: Api, session: Json) -> None:
    kernel = Kernel(researcher.open(session["id"], "jupyterlab"))
    assert not kernel.run(CURVE).error
    kernel.close()
    board = enter(researcher, session["id"], "tensorboard", "runs")
    assert "TensorBoard" in board.get("/").text

    def points() -> list[float] | None:
        query = {"run": "first", "tag": "loss"}
        answer = board.get("/data/plugin/scalars/scalars", params=query)
        return [row[2] for row in answer.json()] if answer.status_code == 200 else None

    assert wait_for("the curve", points) == [1, 0.5, 0.25]


def test_any_web_app_is_served_and_its_port_is_unreachable(
    researcher: Api, session: Json, cluster: Cluster
) -> None:
    word = uuid.uuid4().hex
    command = f"mkdir site; echo {word} > site/index.html; exec python -m http.server -d site $PORT"
    visitor = enter(researcher, session["id"], "webapp", command)
    assert visitor.get("/").text.strip() == word
    found = cluster.run(session["node"], "python3", "-", user="bob", stdin=PROBE_PORTS)
    listening, connected = json.loads(found)
    assert len(listening) == 1, "alice's session opens only the gateway's port"
    assert connected != 0


@pytest.fixture
def bad_app(cluster: Cluster) -> Iterator[str]:
    """An app description with an error in its third line."""
    folder = f"/usr/share/slipway/apps/bad{uuid.uuid4().hex[:8]}"
    text = 'title = "Bad"\\ncommand = "true"\\nlisten = "udp"\\n'
    cluster.shell("portal", f"mkdir {folder} && printf '{text}' > {folder}/app.toml")
    yield folder
    cluster.shell("portal", f"rm -r {folder}")


def test_an_invalid_app_is_reported_and_the_others_work(
    alice: Api, cluster: Cluster, bad_app: str
) -> None:
    words = f"{bad_app}/app.toml, line 3: listen: "
    output = cluster.run("portal", "slipway", "check", check=False)
    assert f"MISSING {words}" in output

    def logged() -> bool:
        alice.ask("GET", "/environments")
        return f"left out: {words}" in cluster.ctl("logs", "portal")

    wait_for("the line in the log", logged)
    listed = cluster.run("portal", "slipway", "apps")
    assert "webapp" in listed
    assert bad_app.rpartition("/")[2] not in listed
