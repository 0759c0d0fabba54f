#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python - <<'PYTHON'
import matplotlib.pyplot, numpy, pandas
import tensorflow as tf
assert tf.__version__.startswith("2.21."), tf.__version__
tf.random.set_seed(1)
inputs = numpy.linspace(-1, 1, 64, dtype="float32").reshape(-1, 1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.SGD(0.3), loss="mse")
history = model.fit(
    inputs, 3 * inputs + 2, epochs=40, verbose=0,
    callbacks=[tf.keras.callbacks.TensorBoard("logs")],
)
assert history.history["loss"][-1] < 1e-3, history.history["loss"][-1]
print(f"  TensorFlow {tf.__version__} trained a model")
import tensorboard.program
PYTHON
tensorboard --version > /dev/null 2>&1
git --version > /dev/null
python /checks/jupyter.py
