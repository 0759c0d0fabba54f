"""Images that only `make images ALL=1` builds do in sessions what they are for.

`make test-images` runs these; elsewhere, those whose images are not built are left out.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.cgroups import MB, SEEN_IN_CGROUP
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, gives_shares, wait_for
from tests.support.recipes import FRAMEWORKS, PYTORCH, RANKS, TENSORFLOW, launch_recipe

SECONDS = 180


def last_line(kernel: Kernel, code: str) -> list[float | str]:
    """The JSON that a cell prints last, after what its libraries print."""
    output = kernel.run(code, SECONDS)
    assert not output.error, output.error
    assert not output.died, output.text
    found: list[float | str] = json.loads(output.text.splitlines()[-1])
    return found


def train(api: Api, session: Json) -> tuple[list[float | str], list[float | str]]:
    """(The version and a prediction after a training, the cgroup's figures) in a session."""
    kernel = Kernel(api.open(session["id"], "jupyterlab"))
    code = TENSORFLOW if session["environment"] == "tensorflow" else PYTORCH
    result = last_line(kernel, code), last_line(kernel, SEEN_IN_CGROUP)
    kernel.close()
    return result


@pytest.mark.needs_images(*FRAMEWORKS)
def test_two_generations_of_tensorflow_and_pytorch_train_at_the_same_time(
    alice: Api, bob: Api
) -> None:
    started = [
        (api, launch_recipe(api, recipe))
        for api, recipe in zip((alice, bob, alice, bob), FRAMEWORKS, strict=True)
    ]
    running = [(api, api.wait_state(one["id"], "RUNNING")) for api, one in started]
    with ThreadPoolExecutor(len(running)) as pool:
        results = list(pool.map(lambda pair: train(*pair), running))
    for recipe, ((version, prediction), cgroup) in zip(FRAMEWORKS, results, strict=True):
        assert str(version).startswith(recipe.partition("/")[2] + "."), (recipe, version)
        # The line through (0, 2) and (1, 5), at -1.
        assert prediction == pytest.approx(-1, abs=0.05), recipe
        assert cgroup == [1200 * MB, 1, 1, 1], recipe
    for api, session in running:
        assert api.get(session["id"])["state"] == "RUNNING"


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(one, marks=pytest.mark.needs_images(one)) for one in ("cpp/14", "cpp/10")],
)
def test_a_cpp_program_is_compiled_and_runs_with_two_ranks(alice: Api, recipe: str) -> None:
    session = launch_recipe(alice, recipe, cpus=2, memory="800m")
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    terminal.type("cat > build.sh <<'SCRIPT'\r" + RANKS.replace("\n", "\r") + "SCRIPT\r")
    printed = terminal.run("sh build.sh", 60)
    terminal.close()
    assert f"GCC {recipe.partition('/')[2]}: 2 ranks made 30" in printed


@pytest.mark.needs_images("r/4.5")
def test_r_shows_a_plot(alice: Api) -> None:
    session = launch_recipe(alice, "r/4.5")
    alice.wait_state(session["id"], "RUNNING")
    kernel = Kernel(alice.open(session["id"], "jupyterlab"), language="ir")
    code = "library(ggplot2)\nprint(ggplot(mtcars, aes(wt, mpg)) + geom_point())\ncat(nrow(mtcars))"
    output = kernel.run(code, SECONDS)
    kernel.close()
    assert not output.error, output.error
    assert output.text == "32"
    # A PNG file in Base64.
    assert output.shown["image/png"].startswith("iVBORw0KGgo")
    assert len(output.shown["image/png"]) > 5000


@pytest.mark.needs_images("julia/1.5")
def test_julia_runs_in_a_terminal(alice: Api) -> None:
    session = launch_recipe(alice, "julia/1.5")
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    printed = terminal.run("julia -e 'println(VERSION, \" \", sum(1:100))'", 60)
    terminal.close()
    assert "1.5.3 5050" in printed


@pytest.mark.needs_images("cpp/10")
def test_nvidia_smi_runs_in_an_image_with_an_old_c_library(alice: Api, cluster: Cluster) -> None:
    wait_for("Slurm to accept GPU jobs", lambda: gives_shares(cluster))
    session = launch_recipe(alice, "cpp/10", memory="300m", fgpu=0.5)
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    assert "ldd (Debian GLIBC 2.31" in terminal.run("ldd --version")
    assert "GPU 0: " in terminal.run("nvidia-smi -L")
    assert "/ 2048MiB" in terminal.run("nvidia-smi")
    terminal.close()
