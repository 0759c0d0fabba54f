#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python3 - <<'PYTHON'
import torch
assert torch.__version__.startswith("1.5."), torch.__version__
inputs = torch.linspace(-1, 1, 64).reshape(-1, 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(200):
    loss = torch.nn.functional.mse_loss(model(inputs), 3 * inputs + 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 1e-6, loss
PYTHON
