"""The transformer: llama and qwen2, by the names that Hugging Face gives their tensors.

RMS norm, rotary positions (halves of a head, as in Hugging Face's files; export.py reorders llama's for GGUF), grouped queries,
SwiGLU; qwen2 has a bias on queries, keys and values. Weights and what runs along the layers are f32; `precision` is that of products.
"""
import dataclasses

import torch
from torch import nn
from torch.nn import functional

from training import operations, plain


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int
    width: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 1
    feed_forward: int = 704
    context: int = 512
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5
    tied: bool = True
    architecture: str = "llama"
    head_width: int = 0  # 0: width / heads

    @property
    def head(self) -> int:
        return self.head_width or self.width // self.heads


class Norm(nn.Module):
    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon, self.by = epsilon, operations

    def forward(self, x, precision):
        return self.by.rms_norm(x, self.weight, self.epsilon, precision)


class Linear(nn.Linear):
    """Computes in its input's precision."""

    def forward(self, x):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return functional.linear(x, self.weight.to(x.dtype), bias)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape, self.by = shape, operations
        bias = shape.architecture == "qwen2"
        self.q_proj = Linear(shape.width, shape.heads * shape.head, bias=bias)
        self.k_proj = Linear(shape.width, shape.kv_heads * shape.head, bias=bias)
        self.v_proj = Linear(shape.width, shape.kv_heads * shape.head, bias=bias)
        self.o_proj = Linear(shape.heads * shape.head, shape.width, bias=False)

    def forward(self, x, cos, sin):
        """x [B][T][D]."""
        rows, tokens, _ = x.shape
        shape = self.shape
        split = lambda y, heads: y.view(rows, tokens, heads, shape.head)
        q = self.by.rotation(split(self.q_proj(x), shape.heads), cos, sin).transpose(1, 2)
        k = self.by.rotation(split(self.k_proj(x), shape.kv_heads), cos, sin).transpose(1, 2)
        v = split(self.v_proj(x), shape.kv_heads).transpose(1, 2)
        mixed = self.by.attention(q.unflatten(1, (shape.kv_heads, -1)), k, v).flatten(1, 2)
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, tokens, -1))


class FeedForward(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.by = operations
        self.gate_proj = Linear(shape.width, shape.feed_forward, bias=False)
        self.up_proj = Linear(shape.width, shape.feed_forward, bias=False)
        self.down_proj = Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x):
        return self.down_proj(self.by.gated_silu(self.gate_proj(x), self.up_proj(x)))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.input_layernorm = Norm(shape.width, shape.norm_epsilon)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape.width, shape.norm_epsilon)
        self.mlp = FeedForward(shape)

    def forward(self, x, cos, sin, precision):
        x = x + self.self_attn(self.input_layernorm(x, precision), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x, precision))


class Decoder(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width, shape.norm_epsilon)


class Model(nn.Module):
    """Names: model.embed_tokens.weight, model.layers.0.self_attn.q_proj.weight, ..., and lm_head.weight if it is not tied."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.model = Decoder(shape)
        if not shape.tied:
            self.lm_head = Linear(shape.width, shape.vocabulary, bias=False)
        self._frequencies = shape.rope_base ** (-torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head)

    def use_plain_operations(self) -> None:
        """Those that a compiler fuses."""
        for module in self.modules():
            if hasattr(module, "by"):
                module.by = plain

    def draw(self, seed: int) -> None:
        """New weights; those that add to the residual stream start smaller, by the root of how many do."""
        torch.manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                narrow = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(weight, std=0.02 / ((2 * self.shape.layers) ** 0.5 if narrow else 1))

    def forward(self, tokens, precision=torch.float32):
        """tokens [B][T] -> logits [B][T][V], of `precision`."""
        at = torch.arange(tokens.shape[1], dtype=torch.float32, device=tokens.device)
        angles = at[:, None, None] * self._frequencies.to(tokens.device)
        cos, sin = angles.cos(), angles.sin()
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, cos, sin, precision)
        output = self.model.embed_tokens.weight if self.shape.tied else self.lm_head.weight
        return functional.linear(self.model.norm(x, precision), output.to(precision))

    def losses(self, rows, precision=torch.float32):
        """Cross entropy of each target in nats; rows [B][T + 1] -> [B][T]."""
        logits = self(rows[:, :-1], precision)
        return functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten(), reduction="none").view(len(rows), -1)

    def loss(self, rows, precision=torch.float32):
        """Their mean."""
        return self.losses(rows, precision).mean()

    def parameter_count(self) -> int:
        return sum(weight.numel() for weight in self.parameters())
