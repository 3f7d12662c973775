"""The safetensors format: 8 bytes with the length of a JSON header, the header ({name: {dtype, shape, data_offsets}}, and
"__metadata__" with texts), the data. Reading it runs no code, and every offset is checked before it is used."""
import json
import math
import mmap
import pathlib
import struct

import torch

from training.errors import TrainingError
from training.files import whole_file

HEADER_BYTES_MAX = 100_000_000  # the format's own limit
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
NAMES = {kind: name for name, kind in TYPES.items()}


def read(path: pathlib.Path):
    """(name -> tensor, metadata)."""
    with open(path, "rb") as file:
        if file.seek(0, 2) < 8:
            raise TrainingError(f"{path}: is no safetensors file: it is too short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return read_mapped(data, path)


def read_mapped(data, path):
    length, = struct.unpack("<Q", data[:8])
    if length > min(HEADER_BYTES_MAX, len(data) - 8):
        raise TrainingError(f"{path}: is no safetensors file, or was cut off: its header would have {length} bytes")
    try:
        header = json.loads(data[8:8 + length])
        metadata = header.pop("__metadata__", {})
        return {name: tensor_of(facts, data, 8 + length, f"{path}: {name}") for name, facts in header.items()}, metadata
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(f"{path}: is no safetensors file: its header is wrong: {error}") from error


def tensor_of(facts: dict, data, base: int, where: str):
    if facts["dtype"] not in TYPES:
        raise TrainingError(f"{where}: has the type {facts['dtype']}; {', '.join(TYPES)} are supported")
    kind, shape, (begin, end) = TYPES[facts["dtype"]], facts["shape"], facts["data_offsets"]
    size = math.prod(shape) * torch.finfo(kind).bits // 8
    if min(shape, default=1) < 0 or not 0 <= begin <= end <= len(data) - base or end - begin != size:
        raise TrainingError(f"{where}: shape {shape} and bytes {begin} to {end} do not fit together or into the file; get it again")
    if size == 0:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(data[base + begin:base + end]), dtype=kind).reshape(shape)


def write(path: pathlib.Path, tensors: dict, metadata: dict) -> None:
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            same_size = torch.int32 if tensor.dtype == torch.float32 else torch.int16  # NumPy has no bf16
            file.write(tensor.detach().cpu().contiguous().view(same_size).numpy().tobytes())
