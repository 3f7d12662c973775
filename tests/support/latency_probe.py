#!/usr/bin/env python3
"""The longest that a daemon lets another client wait: asks for its version again and again until stdin ends, then prints milliseconds.

    latency_probe.py SOCKET

A process of its own, so that the test beside it takes none of its time.
"""

import json
import select
import socket
import sys
import time

kPauseS = 0.002


def main():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        stream = connection.makefile("rb")
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "efim/version"}).encode()
        question = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        longest, asked = 0.0, 0
        while True:
            begun = time.monotonic()
            connection.sendall(question)
            size = int(stream.readline().split(b":")[1])
            stream.readline()
            stream.read(size)
            longest = max(longest, time.monotonic() - begun)
            asked += 1
            if asked == 1:
                print("asking", flush=True)
                longest = 0.0
            if select.select([sys.stdin], [], [], kPauseS)[0]:
                break
        print(f"{longest * 1000:.1f} {asked}")


if __name__ == "__main__":
    main()
