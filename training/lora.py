"""Low-rank adapters (arXiv 2106.09685): the model's matrices stay as they are, and learn the sum of a product of two thin ones."""
import math

import torch
from torch import nn
from torch.nn import functional


class Adapted(nn.Module):
    """linear(x) + up(down(x)); up begins as zeros, so that nothing changes at first."""

    def __init__(self, linear: nn.Linear, rank: int):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.linear(x) + functional.linear(functional.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))

    def merged(self) -> nn.Linear:
        with torch.no_grad():
            self.linear.weight += self.up @ self.down
        return self.linear


def adapt(model: nn.Module, rank: int, seed: int) -> None:
    """Freezes the model and puts adapters around all matrices of its layers."""
    torch.manual_seed(seed)
    for weight in model.parameters():
        weight.requires_grad = False
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and not name.startswith("lm_head"):
                setattr(module, name, Adapted(child, rank))


def merge(model: nn.Module) -> None:
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Adapted):
                setattr(module, name, child.merged())
    for weight in model.parameters():
        weight.requires_grad = True
