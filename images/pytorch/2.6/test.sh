#!/bin/sh
# Does this image do what it promises? Run inside it by `slipway images test`.
set -eu
python - <<'PYTHON'
import matplotlib.pyplot, numpy, pandas, torch, torchvision
assert torch.__version__.startswith("2.6."), torch.__version__
torch.manual_seed(1)
inputs = torch.linspace(-1, 1, 64).reshape(-1, 1)
targets = 3 * inputs + 2
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(200):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 1e-6, loss
assert torchvision.models.resnet18().eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 1000)
assert torch.from_numpy(numpy.arange(3)).sum().item() == 3
print(f"  PyTorch {torch.__version__} trained a model")
PYTHON
git --version > /dev/null
python /checks/jupyter.py
