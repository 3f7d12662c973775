"""The operations of a layer in plain terms, for a compiler that fuses them (torch.compile), and PyTorch's own attention on a card. They
compute what operations.py computes, which is faster where nothing is fused."""
import torch
from torch.nn import functional

from training import operations


def rms_norm(x, weight, epsilon: float, precision):
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight).to(precision)


def rotation(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def gated_silu(gate, up):
    return functional.silu(gate) * up


def attention(q, k, v):
    """Causal. q [B][Hk][G][T][E]; k, v [B][Hk][T][E] -> [B][Hk][G][T][E]."""
    # On a CPU the backward pass of PyTorch 2.6's own took 15 times as long.
    return built_in_attention(q, k, v) if q.is_cuda else operations.attention(q, k, v)


def built_in_attention(q, k, v):
    """PyTorch's own, of the same shapes."""
    rows, kv_heads, group, tokens, head = q.shape
    k, v = (x.unsqueeze(2).expand(rows, kv_heads, group, tokens, head).flatten(1, 2) for x in (k, v))
    q = q.flatten(1, 2)
    if hasattr(functional, "scaled_dot_product_attention"):  # PyTorch 2.0
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        future = torch.full((tokens, tokens), float("-inf"), dtype=q.dtype, device=q.device).triu_(1)
        mixed = functional.softmax(q @ k.transpose(-1, -2) * head ** -0.5 + future, -1) @ v
    return mixed.unflatten(1, (kv_heads, group))
