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


def orthogonal(matrices, precision):
    """About U V^T of each matrix's singular value decomposition. [...][R][C] -> the same."""
    a, b, c = NEWTON_SCHULZ
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = (matrices if wide else matrices.mT).to(precision)
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).to(precision)
    for _ in range(5):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x if wide else x.mT).to(matrices.dtype)


def batches(weights: list) -> list:
    """Lists of weights that are computed together: on a card those of a shape, because small kernels one by one keep it waiting."""
    out = {}
    for number, weight in enumerate(weights):
        out.setdefault(weight.shape if weight.is_cuda else number, []).append(weight)
    return list(out.values())


class Muon(torch.optim.Optimizer):
    def __init__(self, weights, lr: float, precision):
        super().__init__(weights, {"lr": lr})
        self.precision = precision

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weights in batches(group["params"]):
                moves = self._moves(weights)
                rows, columns = weights[0].shape
                torch._foreach_mul_(weights, 1 - group["lr"] * WEIGHT_DECAY)
                torch._foreach_add_(weights, moves, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)

    def _moves(self, weights: list) -> list:
        looking_ahead = []
        for weight in weights:
            momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
            momentum.lerp_(weight.grad, 1 - MUON_MOMENTUM)
            looking_ahead.append(weight.grad.lerp(momentum, MUON_MOMENTUM))
        if len(weights) == 1:
            return [orthogonal(looking_ahead[0], self.precision)]
        return list(orthogonal(torch.stack(looking_ahead), self.precision).unbind())


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
