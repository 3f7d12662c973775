#!/usr/bin/env python3
"""Plays a daemon of before builds were told, for any number of clients: it completes nothing, and cannot retire.

    old_daemon.py SOCKET      prints a line once it listens; ends when it is asked to stop
"""

import json
import os
import socket
import sys
import threading

kAnswers = {
    "initialize": {"capabilities": {"positionEncoding": "utf-16", "inlineCompletionProvider": True,
                                    "textDocumentSync": {"openClose": True, "change": 2}},
                   "serverInfo": {"name": "efimd", "version": "0.0.9"}},
    "efim/version": {"version": "0.0.9", "pid": os.getpid()},
    "textDocument/inlineCompletion": {"items": []},
}


def serve(client, path):
    stream = client.makefile("rwb")
    while header := stream.readline():
        stream.readline()
        message = json.loads(stream.read(int(header.split(b":")[1])))
        if "id" in message and "method" in message:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": kAnswers.get(message["method"])}).encode()
            stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            stream.flush()
        if message.get("method") == "efim/stop":
            os.unlink(path)
            os._exit(0)


def main():
    path, = sys.argv[1:]
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    print("listening", flush=True)
    while True:
        client, _ = listening.accept()
        threading.Thread(target=serve, args=(client, path), daemon=True).start()


if __name__ == "__main__":
    main()
