"""Neovim's API over its socket (MessagePack-RPC), as far as these tests need it. A program started for each question costs more
time than all that Neovim does. The formats are those of the MessagePack specification."""

import socket
import struct

kLengths = {0xd9: ">B", 0xda: ">H", 0xdb: ">I", 0xc4: ">B", 0xc5: ">H", 0xc6: ">I"}  # of text and of bytes
kNumbers = {0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}
kCounts = {0xdc: ">H", 0xdd: ">I"}  # of an array
kConstants = {0xc0: None, 0xc2: False, 0xc3: True}


class RemoteError(Exception):
    """Neovim answered with an error, or ended."""


def packed(value):
    """None, a number, a text or a list of them in MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, int):
        return b"\xce" + struct.pack(">I", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))


class NeovimApi:
    """One connection. `timeout_s` bounds each wait for an answer."""

    def __init__(self, address, timeout_s):
        self.connection = socket.socket(socket.AF_UNIX)
        try:
            self.connection.settimeout(timeout_s)
            self.connection.connect(address)
        except OSError:
            self.connection.close()
            raise
        self.stream = self.connection.makefile("rb")
        self.requests = 0

    def close(self):
        self.stream.close()
        self.connection.close()

    def call(self, method, *arguments):
        """The answer of nvim_…; no two requests are under way at once."""
        self.requests += 1
        try:
            self.connection.sendall(packed([0, self.requests, method, list(arguments)]))
            kind, request, error, result = self.value()
        except OSError as lost:
            raise RemoteError(f"no answer to {method}: {lost}") from lost
        if (kind, request) != (1, self.requests):
            raise RemoteError(f"an answer to another request than {method}: {kind}, {request}")
        if error is not None:
            raise RemoteError(f"{method}: {error}")
        return result

    def read(self, count):
        data = self.stream.read(count)
        if len(data) < count:
            raise RemoteError("Neovim has ended")
        return data

    def number(self, form):
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def value(self):
        tag = self.read(1)[0]
        if tag < 0x80:
            return tag
        if tag >= 0xe0:
            return tag - 0x100
        if tag in kConstants:
            return kConstants[tag]
        if tag in kNumbers:
            return self.number(kNumbers[tag])
        if 0xa0 <= tag < 0xc0 or tag in kLengths:
            return self.read(self.number(kLengths[tag]) if tag in kLengths else tag - 0xa0).decode(errors="replace")
        if 0x90 <= tag < 0xa0 or tag in kCounts:
            return [self.value() for _ in range(self.number(kCounts[tag]) if tag in kCounts else tag - 0x90)]
        raise RemoteError(f"MessagePack of a kind that is not expected: {tag:#x}")
