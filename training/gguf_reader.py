"""Reads a GGUF file: metadata, and tensors of F32 and F16. Every count, length and offset is checked against the file."""
import pathlib
import struct

import numpy

from training import gguf
from training.errors import TrainingError

SIZES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
DTYPES = {gguf.F32: "<f4", gguf.F16: "<f2"}
ITEMS_MAX = 1 << 24  # of an array; more is a damaged file


class Reader:
    def __init__(self, path: pathlib.Path):
        self.path, self.data, self.at = path, path.read_bytes(), 0

    def wrong(self, what: str):
        return TrainingError(f"{self.path}: is no GGUF file that can be read here: {what} at byte {self.at}")

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise self.wrong(f"{size} bytes are wanted")
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, form: str):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def value(self, kind: int):
        if kind == gguf.STRING:
            return self.text()
        if kind == gguf.ARRAY:
            of, count = self.number("<I"), self.number("<Q")
            if count > ITEMS_MAX or of == gguf.ARRAY:
                raise self.wrong(f"an array of {count} items of type {of}")
            return [self.value(of) for _ in range(count)]
        if kind not in SIZES:
            raise self.wrong(f"a value of type {kind}")
        return self.number(SIZES[kind])


def read(path: pathlib.Path):
    """(metadata, name -> array of f32)."""
    reader = Reader(path)
    if reader.take(4) != b"GGUF" or reader.number("<I") not in (2, 3):
        raise reader.wrong("no GGUF header of version 2 or 3")
    tensors, entries = reader.number("<Q"), reader.number("<Q")
    if tensors > ITEMS_MAX or entries > ITEMS_MAX:
        raise reader.wrong(f"{tensors} tensors and {entries} keys")
    metadata = {}
    for _ in range(entries):
        key = reader.text()
        metadata[key] = reader.value(reader.number("<I"))
    places = []
    for _ in range(tensors):
        name, dimensions = reader.text(), reader.number("<I")
        if dimensions > 4:
            raise reader.wrong(f"{name} has {dimensions} dimensions")
        shape = [reader.number("<Q") for _ in range(dimensions)][::-1]
        places.append((name, shape, reader.number("<I"), reader.number("<Q")))
    base = reader.at + -reader.at % metadata.get("general.alignment", gguf.ALIGNMENT)
    return metadata, {name: array(reader, name, shape, kind, base + offset) for name, shape, kind, offset in places}


def array(reader: Reader, name: str, shape: list, kind: int, begin: int):
    if kind == gguf.Q8_0:
        return whole_numbers(reader, name, shape, begin)
    if kind not in DTYPES:
        raise TrainingError(f"{reader.path}: {name} is quantized (type {kind}); only F32, F16 and Q8_0 are trained on")
    reader.at, size = begin, numpy.dtype(DTYPES[kind]).itemsize
    for count in shape:
        size *= count
    return numpy.frombuffer(reader.take(size), DTYPES[kind]).reshape(shape).astype(numpy.float32)


def whole_numbers(reader: Reader, name: str, shape: list, begin: int):
    """Q8_0: blocks of 32 elements of a row, a scale in f16 and 32 whole numbers of 8 bits."""
    if not shape or shape[-1] % 32:
        raise reader.wrong(f"{name} of shape {shape} in Q8_0")
    reader.at, blocks = begin, 1
    for count in shape:
        blocks *= count
    block = numpy.frombuffer(reader.take(blocks // 32 * 34), numpy.dtype([("scale", "<f2"), ("numbers", "i1", 32)]))
    return (block["scale"].astype(numpy.float32)[:, None] * block["numbers"]).reshape(shape)
