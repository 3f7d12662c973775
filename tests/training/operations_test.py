"""A layer's operations: their own backward passes are the derivatives of what they compute, and attention is the plain formula."""
import unittest
import unittest.mock

import support  # noqa: F401 (finds training/)

import torch
from torch.autograd import gradcheck

from training import operations, optimizer, plain
from training.model import Model, Shape


def drawn(*shape, precision=torch.float64, seed=1):
    return torch.randn(shape, dtype=precision, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def turns(tokens: int, pairs: int):
    angles = torch.arange(tokens * pairs, dtype=torch.float64).view(tokens, 1, pairs)
    return angles.cos(), angles.sin()


def plain_attention(q, k, v):
    tokens = q.shape[-2]
    scores = q @ k[:, :, None].transpose(-1, -2) / q.shape[-1] ** 0.5
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v[:, :, None]


class Operations(unittest.TestCase):
    def test_backward_passes_are_derivatives(self):
        precision = torch.float64
        self.assertTrue(gradcheck(lambda x, w: operations.RmsNorm.apply(x, w, 1e-5, precision), (drawn(2, 3, 8), drawn(8))))
        self.assertTrue(gradcheck(operations.GatedSilu.apply, (drawn(3, 8), drawn(3, 8, seed=2))))
        self.assertTrue(gradcheck(lambda x: operations.Rotation.apply(x, *turns(5, 4)), (drawn(2, 5, 3, 8),)))

    def test_they_compute_what_they_say(self):
        x, w = drawn(3, 8), drawn(8, seed=2)
        norm = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w
        torch.testing.assert_close(operations.RmsNorm.apply(x, w, 1e-5, torch.float64), norm)
        torch.testing.assert_close(operations.GatedSilu.apply(x, w), x * x.sigmoid() * w)
        pairs = drawn(1, 5, 2, 8)
        cos, sin = turns(5, 4)
        turned = torch.view_as_complex(torch.stack((pairs[..., :4], pairs[..., 4:]), -1)) * torch.complex(cos, sin)
        torch.testing.assert_close(operations.Rotation.apply(pairs, cos, sin), torch.cat((turned.real, turned.imag), -1))

    def test_attention_in_parts_is_the_plain_formula(self):
        for tokens in (1, operations.QUERIES, 2 * operations.QUERIES + 3):
            q, k, v = drawn(2, 2, 3, tokens, 8), drawn(2, 2, tokens, 8, seed=2), drawn(2, 2, tokens, 8, seed=3)
            torch.testing.assert_close(operations.attention(q, k, v), plain_attention(q, k, v))
            torch.testing.assert_close(plain.built_in_attention(q, k, v), plain_attention(q, k, v))

    def test_matrices_of_a_shape_move_together_as_they_would_alone(self):
        results = []
        for batches in (optimizer.batches, lambda weights: [weights[:3], weights[3:]]):
            weights = [torch.nn.Parameter(drawn(*shape, precision=torch.float32, seed=seed).detach())
                       for seed, shape in enumerate([(12, 8)] * 3 + [(8, 20)] * 2)]
            muon = optimizer.Muon(weights, 0.01, torch.float32)
            with unittest.mock.patch.object(optimizer, "batches", batches):
                for step in range(3):
                    for number, weight in enumerate(weights):
                        weight.grad = drawn(*weight.shape, precision=torch.float32, seed=10 * step + number).detach()
                    muon.step()
            results.append(weights)
        for alone, together in zip(*results):
            torch.testing.assert_close(together, alone)
        moved = optimizer.orthogonal(torch.stack([weight.detach() for weight in results[0][:3]]), torch.float32)
        singular = torch.linalg.svdvals(moved)
        self.assertTrue(bool(((singular > 0.6) & (singular < 1.3)).all()), singular)

    def test_a_model_in_plain_operations_has_the_same_losses_and_gradients(self):
        for architecture in ("llama", "qwen2"):
            model = Model(Shape(vocabulary=60, width=32, layers=2, heads=4, kv_heads=2, feed_forward=48, architecture=architecture))
            model.draw(3)
            rows = torch.randint(0, 60, (2, 200), generator=torch.Generator().manual_seed(4))
            results = []
            for use_plain in (False, True):
                if use_plain:
                    model.use_plain_operations()
                    self.assertIs(model.model.layers[0].self_attn.by, plain)
                model.zero_grad()
                loss = model.loss(rows)
                loss.backward()
                results.append((loss.detach(), [weight.grad.clone() for weight in model.parameters()]))
            torch.testing.assert_close(*results)

    def test_in_bf16_they_are_as_near_as_its_digits(self):
        q, k, v = (drawn(*shape, precision=torch.float32, seed=seed)
                   for seed, shape in enumerate(((1, 1, 2, 200, 64), (1, 1, 200, 64), (1, 1, 200, 64))))
        near = operations.attention(q.bfloat16(), k.bfloat16(), v.bfloat16())
        torch.testing.assert_close(near.float(), plain_attention(q, k, v), atol=0.05, rtol=0.05)
        gate, up = q.bfloat16(), k[:, :, None].bfloat16()
        wide = gate.float() * gate.float().sigmoid() * up.float()
        torch.testing.assert_close(operations.GatedSilu.apply(gate, up.expand_as(gate)).float(), wide, atol=0.02, rtol=0.02)


if __name__ == "__main__":
    unittest.main()
