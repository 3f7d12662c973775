"""Makes the tests' small model smaller: small_model.py F16.gguf Q8_0.gguf

Matrices of F16 become Q8_0, as in the models that people use: processors evaluate a prompt with it several times sooner.
Nothing else changes. Without NumPy, which a build does not need.
"""

import array
import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from training import gguf, gguf_directory  # noqa: E402

kBlock = 32  # weights that share a scale
kElementBytes = {gguf.F32: 4, gguf.F16: 2}


def q8_0(halves):
    """Blocks of a scale (F16) and 32 whole numbers, from F16."""
    out = bytearray()
    for block in struct.iter_unpack(f"<{kBlock}e", halves):
        scale = max(max(block), -min(block)) / 127
        factor = 1 / scale if scale else 0
        out += struct.pack("<e", scale) + array.array("b", [round(value * factor) for value in block]).tobytes()
    return bytes(out)


def smaller(reader, name, shape, kind, begin):
    """The tensor as gguf.write() takes it."""
    reader.at = begin
    values = reader.take(kElementBytes[kind] * math.prod(shape))
    if kind == gguf.F16 and len(shape) == 2 and shape[1] % kBlock == 0:
        return name, shape, gguf.Q8_0, q8_0(values)
    return name, shape, kind, values


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    reader, metadata, places = gguf_directory.read(source)
    metadata = [(key, kind, gguf.FILE_TYPES["q8_0"] if key == "general.file_type" else value) for key, kind, value in metadata]
    with open(target, "wb") as file:
        gguf.write(file, metadata, [smaller(reader, *place) for place in places])


if __name__ == "__main__":
    main()
