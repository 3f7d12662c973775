"""Operations of a layer with backward passes of their own. Small models spend most of their time on moving memory, and these touch it
less often than autograd's. Arithmetic is f32 inside; results have their input's precision, or the one that is asked for.
"""
import torch
from torch.nn import functional

PIECE = 1 << 17  # elements that go through all steps of an operation before the next do: a core's cache holds them


def pieces(*tensors):
    """Rows of [...][D] tensors, as many together as a cache holds; all of them if there is no such cache."""
    flat = [x.reshape(-1, x.shape[-1]) for x in tensors]
    rows, width = flat[0].shape
    size = max(1, rows if flat[0].is_cuda else PIECE // width)
    return zip(*(x.split(size) for x in flat))


class RmsNorm(torch.autograd.Function):
    """x / sqrt(mean(x^2) + epsilon) * weight; x [...][D] f32 -> [...][D] of `precision`."""

    @staticmethod
    def forward(context, x, weight, epsilon: float, precision):
        scale = (torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_() / x.shape[-1] + epsilon).rsqrt_()
        context.save_for_backward(x, weight, scale)
        out = torch.empty(x.shape, dtype=precision, device=x.device)
        for row, by, to in pieces(x, scale, out):
            to.copy_((row * by).mul_(weight))
        return out

    @staticmethod
    def backward(context, gradient):
        x, weight, scale = context.saved_tensors
        of_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        of_weight = torch.zeros_like(weight)
        for row, by, given, to in pieces(x, scale, gradient, of_x):
            unit, given = row * by, given.to(x.dtype)
            of_weight += (given * unit).sum(0)
            of_unit = given * weight
            along = (of_unit * unit).mean(-1, keepdim=True)
            torch.mul(of_unit.sub_(unit.mul_(along)), by, out=to)
        return of_x, of_weight, None, None


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
        out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
        for a, b, to in pieces(gate, up, out):
            to.copy_(functional.silu(widened(a)).mul_(b))
        return out

    @staticmethod
    def backward(context, gradient):
        gate, up = context.saved_tensors
        of_gate, of_up = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (gate, up))
        for a, b, given, to_gate, to_up in pieces(gate, up, gradient, of_gate, of_up):
            wide = widened(a)
            to_up.copy_(functional.silu(wide).mul_(given))
            to_gate.copy_(torch.ops.aten.silu_backward(widened(given) * b, wide))
        return of_gate, of_up


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


rms_norm, rotation, gated_silu = RmsNorm.apply, Rotation.apply, GatedSilu.apply
