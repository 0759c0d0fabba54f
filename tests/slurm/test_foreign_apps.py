"""The proxy's promises (docs/developers/app.md) to apps that nobody here wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.catalog import wait_for_catalog
from tests.support.client import TIMEOUT, Api, Visitor
from tests.support.cluster import Cluster, wait_for
from tests.support.paths import ROOT

SOFTWARE = ROOT / "cluster" / ".cache" / "software"
ENVIRONMENT = "foreign"
SIZE = {"cpus": 2, "memory": "1500m"}
BUILD_SECONDS = 900
pytestmark = pytest.mark.timeout(BUILD_SECONDS + 240)
READY_SECONDS = 150.0
"""Most of them import hundreds of modules, from a cold file system."""

GRADIO = (
    "import gradio, os; gradio.Interface(lambda text: text.upper(), 'text', 'text', "
    "api_name='predict').launch(server_name='127.0.0.1', server_port=int(os.environ['PORT']))"
)
DASH = (
    "import dash, os; app = dash.Dash(); app.layout = dash.html.P('hello-dash'); "
    "app.run(host='127.0.0.1', port=os.environ['PORT'])"
)
STREAMLIT = "import streamlit; streamlit.write(1)"
BOKEH = "import bokeh.io as io, bokeh.models as m; io.curdoc().add_root(m.Div(text=str(1)))"
SHINY = r"from shiny.express import ui\nui.h1(\"hello-shiny\")\n"
FLASK = r"import flask\napp = flask.Flask(__name__)\n@app.get(\"/\")\ndef page(): 1 / 0\n"
COMMANDS = {
    "gradio": f'python -c "{GRADIO}"',
    "streamlit": f'echo "{STREAMLIT}" > app.py; streamlit run app.py --server.headless true '
    "--server.address 127.0.0.1 --server.port $PORT --browser.gatherUsageStats false",
    "dash": f'python -c "{DASH}"',
    "bokeh": f'echo "{BOKEH}" > page.py; bokeh serve page.py --address 127.0.0.1 --port $PORT '
    '--allow-websocket-origin "${SLIPWAY_ORIGIN#*://}"',
    "shiny": f'printf "{SHINY}" > app.py; shiny run app.py --host 127.0.0.1 --port $PORT',
    "flask": f'printf "{FLASK}" > app.py; flask --app app run --debug --port $PORT',
    "mlflow": "mlflow server --host 127.0.0.1 --port $PORT --workers 1 --allowed-hosts '*' "
    '--cors-allowed-origins "$SLIPWAY_ORIGIN" '
    "--backend-store-uri sqlite:///runs.db",
}


@pytest.fixture(scope="module")
def environment(cluster: Cluster) -> Iterator[str]:
    """An image with the apps, offered during the tests; tests/run.sh has begun to build it."""
    built, offered = (SOFTWARE / folder / ENVIRONMENT for folder in ("test-images", "images"))
    done = subprocess.run(
        [str(ROOT / "cluster" / "images.sh"), "for-tests"],
        env=cluster.environment(), capture_output=True, text=True, timeout=BUILD_SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    shutil.rmtree(offered, ignore_errors=True)  # left behind by a killed run
    links = built.with_name(".offered")
    shutil.rmtree(links, ignore_errors=True)
    shutil.copytree(built, links, symlinks=True, copy_function=os.link)
    links.rename(offered)
    wait_for_catalog()
    yield ENVIRONMENT
    shutil.rmtree(offered)


@pytest.fixture
def session(alice: Api, environment: str) -> str:
    """A session of that image, which ends with the test."""
    found: str = alice.running(environment=environment, version="1", resources=SIZE)["id"]
    return found


def opened(api: Api, session: str, name: str) -> Visitor:
    """A browser at the app, once it answers; any answer counts, also an error page."""
    asked = f"export PATH=/opt/apps/{name}/bin:$PATH; cd $(mktemp -d); {COMMANDS[name]}"
    link = api.ask("POST", f"/sessions/{session}/apps/webapp", json={"asked": asked})
    visitor = Visitor(link["url"])
    visitor.http.get(visitor.link, timeout=TIMEOUT)

    def ready() -> bool:
        now = visitor.get("/.slipway/status").json()
        assert now["step"] not in ("failed", "over"), now
        return bool(now["step"] == "ready")

    wait_for(name, ready, READY_SECONDS)
    return visitor


def test_gradio_computes_and_streams_its_events(alice: Api, session: str) -> None:
    visitor = opened(alice, session, "gradio")
    assert "gradio" in visitor.get("/").text
    call = "/gradio_api/call/predict"
    answer = visitor.send("POST", call, json={"data": ["abc"]})
    assert answer.status_code == 200, answer.text
    assert "ABC" in visitor.get(f"{call}/{answer.json()['event_id']}").text


def test_streamlit_has_its_websocket(alice: Api, session: str) -> None:
    visitor = opened(alice, session, "streamlit")
    assert visitor.get("/_stcore/health").text == "ok"
    with closing(visitor.websocket("/_stcore/stream", "streamlit")) as stream:
        stream.ping().wait(TIMEOUT)


def test_dash_serves_its_layout(alice: Api, session: str) -> None:
    visitor = opened(alice, session, "dash")
    assert "hello-dash" in json.dumps(visitor.get("/_dash-layout").json())


def test_bokeh_redirects_within_its_origin(alice: Api, session: str) -> None:
    visitor = opened(alice, session, "bokeh")
    page = visitor.get("/")
    assert page.url.startswith(visitor.origin)
    assert "Bokeh" in page.text


def test_shiny_shows_its_page(alice: Api, session: str) -> None:
    assert "hello-shiny" in opened(alice, session, "shiny").get("/").text


def test_flasks_own_error_page_is_shown(alice: Api, session: str) -> None:
    """It is ready although its page answers 500: its author wants to see the traceback."""
    page = opened(alice, session, "flask").get("/")
    assert page.status_code == 500
    assert "ZeroDivisionError" in page.text


def test_mlflow_takes_requests_from_its_page(alice: Api, session: str) -> None:
    visitor = opened(alice, session, "mlflow")
    made = visitor.send("POST", "/api/2.0/mlflow/experiments/create", json={"name": "first"})
    assert made.status_code == 200, made.text
    found = visitor.get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=first")
    assert found.json()["experiment"]["experiment_id"] == made.json()["experiment_id"]
