"""TensorFlow in a slice; prints its findings as JSON."""

from __future__ import annotations

import tensorflow
from saying import say


def main() -> None:
    """A product on the GPU, by the allocator that takes what there is."""
    gpus = tensorflow.config.list_physical_devices("GPU")
    with tensorflow.device("/GPU:0"):
        data = tensorflow.ones((512, 512))
        found = float(tensorflow.reduce_sum(data @ data))
    say(result=[len(gpus), found])


main()
