"""Operations of a layer with backward passes of their own: small models spend most of their time on moving memory, and these touch
it less often than what autograd derives. Arithmetic is f32 inside; results have their input's precision, or the one that is asked for.
"""
import torch
from torch.nn import functional


class RmsNorm(torch.autograd.Function):
    """x / sqrt(mean(x^2) + epsilon) * weight; x [...][D] f32 -> [...][D] of `precision`."""

    @staticmethod
    def forward(context, x, weight, epsilon: float, precision):
        scale = (torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_() / x.shape[-1] + epsilon).rsqrt_()
        context.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight).to(precision)

    @staticmethod
    def backward(context, gradient):
        x, weight, scale = context.saved_tensors
        gradient, unit = gradient.to(x.dtype), x * scale
        of_weight = (gradient * unit).flatten(0, -2).sum(0)
        of_unit = gradient * weight
        along = (of_unit * unit).mean(-1, keepdim=True)
        return of_unit.sub_(unit.mul_(along)).mul_(scale), of_weight, None, None


class Rotation(torch.autograd.Function):
    """Rotary positions: pairs (i, i + E/2) of each head are turned. x [B][T][H][E]; cos, sin [T][1][E/2] f32."""

    @staticmethod
    def forward(context, x, cos, sin):
        context.save_for_backward(cos, sin)
        return turned(x, cos, sin)

    @staticmethod
    def backward(context, gradient):
        cos, sin = context.saved_tensors
        return turned(gradient, cos, -sin), None, None


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    out = torch.empty_like(x)
    half = x.shape[-1] // 2
    out[..., :half] = (a * cos).addcmul_(b.to(cos.dtype), sin, value=-1)
    out[..., half:] = (b * cos).addcmul_(a.to(cos.dtype), sin)
    return out


class GatedSilu(torch.autograd.Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(context, gate, up):
        context.save_for_backward(gate, up)
        return functional.silu(widened(gate)).to(up.dtype).mul_(up)

    @staticmethod
    def backward(context, gradient):
        gate, up = context.saved_tensors
        wide = widened(gate)
        of_silu = torch.ops.aten.silu_backward(widened(gradient * up), wide)
        return of_silu.to(gate.dtype), functional.silu(wide).to(up.dtype).mul_(gradient)


def widened(x):
    return x.float() if x.dtype == torch.bfloat16 else x


QUERIES = 128  # of one part of attention(): what lies in its future beyond the part is not computed


def attention(q, k, v):
    """Causal. q [B][Hk][G][T][E], the G heads that share a key head beside each other; k, v [B][Hk][T][E] -> [B][Hk][G][T][E]."""
    rows, kv_heads, group, tokens, head = q.shape
    k, v = (x.reshape(rows * kv_heads, tokens, head) for x in (k, v))
    parts = []
    for begin in range(0, tokens, QUERIES):
        end = min(begin + QUERIES, tokens)
        queries = q[:, :, :, begin:end].reshape(rows * kv_heads, group * (end - begin), head)
        future = torch.full((end - begin, end), float("-inf"), dtype=q.dtype, device=q.device).triu_(begin + 1)
        scores = torch.baddbmm(future.repeat(group, 1), queries, k[:, :end].transpose(-1, -2), alpha=head ** -0.5)
        mixed = functional.softmax(scores, -1) @ v[:, :end]
        parts.append(mixed.view(rows, kv_heads, group, end - begin, head))
    return torch.cat(parts, 3)
