"""Matrices as GGUF's blocks of small numbers; f32 rows [R][C] in, bytes out. Layouts as in ggml's quantization formats."""
import numpy

from training import gguf

# d: f16 scale of a block.  Blocks of 32: Q8_0 d, 32 int8;  Q5_0 d, 4 bytes of fifth bits, 16 bytes of low and high nibbles.
# Blocks of 256: Q4_K d, dmin, 12 bytes of 6-bit scales and minima of 8 groups, 128 bytes of nibbles.


def quotient(values, scales):
    return numpy.divide(values, scales, where=scales != 0, out=numpy.zeros_like(values))


def half(values):
    return values.astype("<f2").view(numpy.uint8).reshape(len(values), 2)


def q8_0(rows) -> bytes:
    blocks = rows.reshape(-1, 32).astype(numpy.float32)
    scale = numpy.abs(blocks).max(1, keepdims=True) / 127
    codes = numpy.rint(quotient(blocks, scale)).astype(numpy.int8)
    return numpy.concatenate([half(scale), codes.view(numpy.uint8)], 1).tobytes()


def q5_0(rows) -> bytes:
    blocks = rows.reshape(-1, 32).astype(numpy.float32)
    peak = numpy.take_along_axis(blocks, numpy.abs(blocks).argmax(1)[:, None], 1)
    scale = peak / -16
    codes = numpy.clip(numpy.rint(quotient(blocks, scale)) + 16, 0, 31).astype(numpy.uint8)
    fifth = numpy.packbits(codes >> 4, axis=1, bitorder="little")
    nibbles = (codes[:, :16] & 15) | ((codes[:, 16:] & 15) << 4)
    return numpy.concatenate([half(scale), fifth, nibbles], 1).tobytes()


def q4_k(rows) -> bytes:
    groups = rows.reshape(-1, 8, 32).astype(numpy.float32)
    low = numpy.minimum(groups.min(2), 0)
    scale, least = (groups.max(2) - low) / 15, -low
    d, dmin = scale.max(1, keepdims=True) / 63, least.max(1, keepdims=True) / 63
    d, dmin = (value.astype("<f2").astype(numpy.float32) for value in (d, dmin))
    scale_codes = numpy.clip(numpy.rint(quotient(scale, d)), 0, 63).astype(numpy.uint8)
    least_codes = numpy.clip(numpy.rint(quotient(least, dmin)), 0, 63).astype(numpy.uint8)
    step, offset = (d * scale_codes)[:, :, None], (dmin * least_codes)[:, :, None]
    codes = numpy.clip(numpy.rint(quotient(groups + offset, numpy.broadcast_to(step, groups.shape))), 0, 15).astype(numpy.uint8)
    pairs = codes.reshape(-1, 4, 2, 32)
    nibbles = (pairs[:, :, 0] | (pairs[:, :, 1] << 4)).reshape(-1, 128)
    return numpy.concatenate([half(d), half(dmin), six_bits(scale_codes, least_codes), nibbles], 1).tobytes()


def six_bits(scales, leasts):
    """Of groups 0 to 3 in the low bits of 4 bytes each; of groups 4 to 7 as nibbles after them, and their high bits above those."""
    first = scales[:, :4] | ((scales[:, 4:] >> 4) << 6)
    second = leasts[:, :4] | ((leasts[:, 4:] >> 4) << 6)
    third = (scales[:, 4:] & 15) | ((leasts[:, 4:] & 15) << 4)
    return numpy.concatenate([first, second, third], 1)


def encoded(rows, kind: str):
    """(GGUF's type, bytes). Rows that are no multiple of a type's block get the next finer one that fits."""
    columns = rows.shape[-1]
    if kind == "q4_k" and columns % 256 == 0:
        return gguf.Q4_K, q4_k(rows)
    if kind == "q4_k" and columns % 32 == 0:
        return gguf.Q5_0, q5_0(rows)
    if kind == "q8_0" and columns % 32 == 0:
        return gguf.Q8_0, q8_0(rows)
    return gguf.F16, rows.astype("<f2").tobytes()
