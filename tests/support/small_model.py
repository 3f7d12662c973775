"""Makes the tests' small model smaller: small_model.py F16.gguf Q8_0.gguf

Matrices of F16 become Q8_0, as in the models that people use: processors evaluate a prompt with it several times sooner.
Nothing else changes. The layout is that of ggml's specification of GGUF, version 3.
"""

import array
import math
import pathlib
import struct
import sys

kBlock = 32  # weights that share a scale
kF16, kQ8_0 = 1, 8  # ggml's numbers of types
kFileQ8_0 = 7  # and general.file_type's of such a file
kText, kArray = 8, 9  # types of metadata
kValueBytes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


class Reader:
    """Values one after another, from the start of `data`."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self, form):
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def skip_value(self, kind):
        if kind == kText:
            self.text()
        elif kind == kArray:
            of = self.number("I")
            for _ in range(self.number("Q")):
                self.skip_value(of)
        else:
            self.at += kValueBytes[kind]


def q8_0(halves):
    """Blocks of a scale (F16) and 32 whole numbers, from F16."""
    out = bytearray()
    for block in struct.iter_unpack(f"<{kBlock}e", halves):
        scale = max(max(block), -min(block)) / 127
        factor = 1 / scale if scale else 0
        out += struct.pack("<e", scale) + array.array("b", [round(value * factor) for value in block]).tobytes()
    return bytes(out)


def smaller(data):
    """The bytes of a GGUF file with Q8_0 for F16."""
    reader = Reader(data)
    magic, version, tensors, entries = (reader.number(form) for form in ("4s", "I", "Q", "Q"))
    if magic != b"GGUF" or version != 3:
        sys.exit("small_model.py: no GGUF file of version 3")
    head = bytearray(data)
    alignment = 32
    for _ in range(entries):
        key, kind, at = reader.text(), reader.number("I"), reader.at
        reader.skip_value(kind)
        if key == b"general.file_type":
            struct.pack_into("<I", head, at, kFileQ8_0)
        if key == b"general.alignment":
            (alignment,) = struct.unpack_from("<I", data, at)
    head = head[:reader.at]
    described = []
    for _ in range(tensors):
        name = reader.text()
        axes = [reader.number("Q") for _ in range(reader.number("I"))]
        described.append((name, axes, reader.number("I"), reader.number("Q")))
    start = -(-reader.at // alignment) * alignment
    offsets = sorted(offset for *_, offset in described)
    end_of = dict(zip(offsets, [*offsets[1:], len(data) - start]))
    weights = bytearray()
    for name, axes, kind, offset in described:
        values = data[start + offset:start + end_of[offset]]
        if kind == kF16 and len(axes) == 2 and axes[0] % kBlock == 0:
            values = q8_0(values[:2 * math.prod(axes)])
            kind = kQ8_0
        head += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, len(weights))
        weights += values + bytes(-len(values) % alignment)
    return bytes(head) + bytes(-len(head) % alignment) + bytes(weights)


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_bytes(smaller(source.read_bytes()))
