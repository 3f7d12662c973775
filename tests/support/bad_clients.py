#!/usr/bin/env python3
"""Clients without measure at a daemon's socket, as many of each kind, for some seconds.

    bad_clients.py SOCKET CLIENTS SECONDS

Prints how many connections they had. One that is closed comes back.
"""

import json
import random
import socket
import sys
import threading
import time

kMiB = 2**20
kLargest = 63 * kMiB


def framed(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def notification(method, params):
    return framed({"jsonrpc": "2.0", "method": method, "params": params})


kInitialize = framed({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}})
kStatus = framed({"jsonrpc": "2.0", "id": 1, "method": "efim/status"})


def opening(uri, text):
    return notification("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "cpp", "version": 1, "text": text}})


def never_reading(connection, number):
    del number
    connection.sendall(kInitialize)
    while True:
        connection.sendall(kStatus * 100)


def half_frames(connection, number):
    connection.sendall(b"Content-Length: %d\r\n\r\n" % (100 * kMiB))
    while True:
        connection.sendall(b" " * (kMiB >> number % 8))
        time.sleep(0.05)


def flooding(connection, number):
    uri, at = f"file:///flood/{number}.cpp", {"line": 0, "character": 0}
    document = {"uri": uri, "version": 2}
    connection.sendall(kInitialize + opening(uri, "int some = 1;\n" * 5000))
    flood = b"".join([
        notification("textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": {"start": at, "end": at}, "text": "x"}]}),
        notification("efim/didDismiss", {"textDocument": document}), notification("efim/didFocus", {"textDocument": document}),
        framed({"jsonrpc": "2.0", "id": "asked", "method": "textDocument/inlineCompletion",
                "params": {"textDocument": document, "position": at, "context": {"triggerKind": 1}}})])
    connection.setblocking(True)
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    while True:
        connection.sendall(flood)


def drain(connection):
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass


def large_documents(connection, number):
    connection.sendall(kInitialize)
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    for document in range(4):
        connection.sendall(large_document(number * 4 + document))
    while True:
        connection.sendall(kStatus)
        time.sleep(0.5)


def large_document(number):
    """Made once: a hundred clients of 63 MiB each would have no memory for their own."""
    head, tail = opening(f"file:///large/{number:04}.cpp", "@").split(b"@")
    size = kLargest + len(head.partition(b"\r\n\r\n")[2]) + len(tail)
    return b"Content-Length: %d\r\n\r\n" % size + head.partition(b"\r\n\r\n")[2] + kText + tail


kText = b"int some = 12345678; " * (kLargest // 21) + b" " * (kLargest % 21)
kKinds = [never_reading, half_frames, flooding, large_documents]


def main():
    path, clients, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    end = time.monotonic() + seconds
    counts = {kind.__name__: 0 for kind in kKinds}
    lock = threading.Lock()

    def misbehave(kind, number):
        while time.monotonic() < end:
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(max(0.1, end - time.monotonic()))
                    connection.connect(path)
                    with lock:
                        counts[kind.__name__] += 1
                    kind(connection, number)
            except OSError:
                time.sleep(random.random() * 0.1)

    threads = [threading.Thread(target=misbehave, args=(kind, number), daemon=True) for kind in kKinds for number in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(max(0, end - time.monotonic()))
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
