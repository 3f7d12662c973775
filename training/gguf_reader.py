"""Reads a GGUF file: metadata, and tensors of F32, F16 and Q8_0."""
import pathlib

import numpy

from training import gguf, gguf_directory
from training.errors import TrainingError
from training.gguf_directory import Reader

DTYPES = {gguf.F32: "<f4", gguf.F16: "<f2"}


def read(path: pathlib.Path):
    """(metadata, name -> array of f32)."""
    reader, metadata, places = gguf_directory.read(path)
    return ({key: value[1] if kind == gguf.ARRAY else value for key, kind, value in metadata},
            {name: array(reader, name, shape, kind, begin) for name, shape, kind, begin in places})


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
