"""Images that only `make images ALL=1` builds do in sessions what they are for.

`make test-images` runs these; elsewhere, those whose images are not built are left out.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.slurm.test_session import MB, SEEN_IN_CGROUP
from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, gives_shares, wait_for

FRAMEWORKS = ("tensorflow/2.21", "tensorflow/2.8", "pytorch/2.6", "pytorch/1.13")
SECONDS = 180

TENSORFLOW = """
import json, numpy
import tensorflow as tf
tf.random.set_seed(1)
inputs = numpy.linspace(-1, 1, 64, dtype="float32").reshape(-1, 1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss="mse")
model.fit(inputs, 3 * inputs + 2, epochs=40, verbose=0)
print(json.dumps([tf.__version__, float(model.predict(inputs[:1], verbose=0)[0][0])]))
"""
PYTORCH = """
import json, torch
torch.manual_seed(1)
inputs = torch.linspace(-1, 1, 64).reshape(-1, 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(200):
    loss = torch.nn.functional.mse_loss(model(inputs), 3 * inputs + 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(json.dumps([torch.__version__, model(inputs[:1]).item()]))
"""
RANKS = r"""cat > ranks.cpp <<'END'
#include <mpi.h>
#include <cstdio>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int mine = 10 * (rank + 1);
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%d ranks made %d\n", ranks, sum);
    MPI_Finalize();
}
END
mpicxx -O2 ranks.cpp -o ranks && echo "GCC $(gcc -dumpversion): $(mpirun -n 2 ./ranks)"
"""


def launch(api: Api, recipe: str, **resources: object) -> Json:
    """Launch a session of a recipe's image."""
    environment, _, version = recipe.partition("/")
    wanted = {"cpus": 1, "memory": "1200m"} | resources
    return api.launch(environment=environment, version=version, resources=wanted)


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
        (api, launch(api, recipe))
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
    session = launch(alice, recipe, cpus=2, memory="800m")
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    terminal.type("cat > build.sh <<'SCRIPT'\r" + RANKS.replace("\n", "\r") + "SCRIPT\r")
    printed = terminal.run("sh build.sh", 60)
    terminal.close()
    assert f"GCC {recipe.partition('/')[2]}: 2 ranks made 30" in printed


@pytest.mark.needs_images("r/4.5")
def test_r_shows_a_plot(alice: Api) -> None:
    session = launch(alice, "r/4.5")
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
    session = launch(alice, "julia/1.5")
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    printed = terminal.run("julia -e 'println(VERSION, \" \", sum(1:100))'", 60)
    terminal.close()
    assert "1.5.3 5050" in printed


@pytest.mark.needs_images("cpp/10")
def test_nvidia_smi_runs_in_an_image_with_an_old_c_library(alice: Api, cluster: Cluster) -> None:
    wait_for("Slurm to accept GPU jobs", lambda: gives_shares(cluster))
    session = launch(alice, "cpp/10", memory="300m", fgpu=0.5)
    alice.wait_state(session["id"], "RUNNING")
    terminal = Terminal(alice.open(session["id"], "terminal"))
    assert "ldd (Debian GLIBC 2.31" in terminal.run("ldd --version")
    assert "GPU 0: " in terminal.run("nvidia-smi -L")
    assert "/ 2048MiB" in terminal.run("nvidia-smi")
    terminal.close()
