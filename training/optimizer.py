"""The optimizers: Muon for the matrices inside of layers, AdamW for the rest (or, with `adamw`, for all).

Muon (Jordan et al., 2024) follows the momentum's nearest orthogonal matrix, so that all directions of a matrix learn alike; trained
from scratch it needs a fraction of AdamW's tokens. For weights that were trained with AdamW, as downloaded ones are, stay with that.
"""
import torch

MUON_MOMENTUM = 0.95
MUON_SCALE = 6.0  # Muon's rate for a rate of 1 of AdamW's
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # coefficients that bring singular values near 1 in five rounds
WEIGHT_DECAY = 0.05
ADAM_BETAS = (0.9, 0.95)


def orthogonal(matrix, precision):
    """About U V^T of the matrix's singular value decomposition."""
    a, b, c = NEWTON_SCHULZ
    wide = matrix.shape[0] <= matrix.shape[1]
    x = (matrix if wide else matrix.T).to(precision)
    x = x / (x.float().norm() + 1e-7).to(precision)
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x if wide else x.T).to(matrix.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, weights, lr: float, precision):
        super().__init__(weights, {"lr": lr})
        self.precision = precision

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
                momentum.lerp_(weight.grad, 1 - MUON_MOMENTUM)
                move = orthogonal(weight.grad.lerp(momentum, MUON_MOMENTUM), self.precision)
                weight.mul_(1 - group["lr"] * WEIGHT_DECAY)
                weight.add_(move, alpha=-group["lr"] * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)


class Optimizers:
    """Those of one model, stepped together; `base_rate` is AdamW's."""

    def __init__(self, model, kind: str, precision):
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        inner = {name for name, weight in trained.items() if kind == "muon" and weight.dim() == 2 and ".layers." in name}
        flat = [weight for name, weight in trained.items() if name not in inner and weight.dim() < 2]
        other = [weight for name, weight in trained.items() if name not in inner and weight.dim() == 2]
        fused = {"fused": True} if any(weight.is_cuda for weight in trained.values()) else {}
        self.all = [torch.optim.AdamW([{"params": other, "weight_decay": WEIGHT_DECAY}, {"params": flat, "weight_decay": 0.0}],
                                      lr=0.0, betas=ADAM_BETAS, **fused)]
        self.scales = [1.0]
        if inner:
            self.all.append(Muon([trained[name] for name in sorted(inner)], 0.0, precision))
            self.scales.append(MUON_SCALE)

    def step(self, rate: float) -> None:
        for optimizer, scale in zip(self.all, self.scales):
            for group in optimizer.param_groups:
                group["lr"] = rate * scale
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> list:
        """Their tensors; rates and the like are the run's."""
        return [optimizer.state_dict()["state"] for optimizer in self.all]

    def load(self, states: list) -> None:
        for optimizer, state in zip(self.all, states):
            optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
