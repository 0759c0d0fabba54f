#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python3 - <<'PYTHON'
import numpy
import tensorflow as tf
assert tf.__version__.startswith("1.13."), tf.__version__
inputs = numpy.linspace(-1, 1, 64, dtype="float32").reshape(-1, 1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss="mse")
history = model.fit(inputs, 3 * inputs + 2, epochs=40, verbose=0)
assert history.history["loss"][-1] < 1e-3, history.history["loss"][-1]
PYTHON
