"""Programs for images with frameworks, and sessions of recipes' images."""

from __future__ import annotations

from tests.support.client import Api, Json

FRAMEWORKS = ("tensorflow/2.21", "tensorflow/2.8", "pytorch/2.6", "pytorch/1.13")
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


def launch_recipe(api: Api, recipe: str, **resources: object) -> Json:
    """Launch a session of a recipe's image."""
    environment, _, version = recipe.partition("/")
    wanted = {"cpus": 1, "memory": "1200m"} | resources
    return api.launch(environment=environment, version=version, resources=wanted)
