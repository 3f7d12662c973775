"""The directory of a GGUF file: metadata, and where tensors lie. Every count, length and offset is checked against the file. Without
NumPy, so that a build can read one, too."""
import pathlib
import struct

from training import gguf
from training.errors import TrainingError

SIZES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
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
            return of, [self.value(of) for _ in range(count)]
        if kind not in SIZES:
            raise self.wrong(f"a value of type {kind}")
        return self.number(SIZES[kind])


def read(path: pathlib.Path):
    """(the reader; metadata as gguf.write() takes it; (name, shape as there, type, byte in the file) of tensors)."""
    reader = Reader(path)
    if reader.take(4) != b"GGUF" or reader.number("<I") not in (2, 3):
        raise reader.wrong("no GGUF header of version 2 or 3")
    tensors, entries = reader.number("<Q"), reader.number("<Q")
    if tensors > ITEMS_MAX or entries > ITEMS_MAX:
        raise reader.wrong(f"{tensors} tensors and {entries} keys")
    metadata = []
    for _ in range(entries):
        key, kind = reader.text(), reader.number("<I")
        metadata.append((key, kind, reader.value(kind)))
    places = []
    for _ in range(tensors):
        name, dimensions = reader.text(), reader.number("<I")
        if dimensions > 4:
            raise reader.wrong(f"{name} has {dimensions} dimensions")
        shape = [reader.number("<Q") for _ in range(dimensions)][::-1]
        places.append((name, shape, reader.number("<I"), reader.number("<Q")))
    alignment = next((value for key, _, value in metadata if key == "general.alignment"), gguf.ALIGNMENT)
    base = reader.at + -reader.at % alignment
    return reader, metadata, [(name, shape, kind, base + offset) for name, shape, kind, offset in places]
