"""The GGUF format, written: a header, metadata (key, type, value), the tensors' names, shapes, types and offsets, then their data,
each aligned to 32 bytes. All numbers are little-endian."""
import struct

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # types of metadata
F32, F16, Q5_0, Q8_0, Q4_K = 0, 1, 6, 8, 12  # types of tensors
FILE_TYPES = {"f16": 1, "q8_0": 7, "q4_k": 15}


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_of(kind: int, value) -> bytes:
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(value_of(of, item) for item in items)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)


def write(file, metadata: list, tensors: list) -> None:
    """metadata: (key, type, value), an array's value being (element type, list). tensors: (name, shape, type, bytes), the shape as
    [rows, columns] or [columns]; GGUF has them the other way round."""
    file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)))
    size = 24
    for key, kind, value in metadata:
        entry = text(key) + struct.pack("<I", kind) + value_of(kind, value)
        file.write(entry)
        size += len(entry)
    offset = 0
    for name, shape, kind, data in tensors:
        entry = text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        entry += struct.pack("<IQ", kind, offset)
        file.write(entry)
        size += len(entry)
        offset += len(data) + padding(len(data))
    file.write(b"\0" * padding(size))
    for _, _, _, data in tensors:
        file.write(data)
        file.write(b"\0" * padding(len(data)))


def padding(size: int) -> int:
    return -size % ALIGNMENT
