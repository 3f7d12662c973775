#!/usr/bin/env python3
"""Types a text by /infill as llama.vim sends it, to efimd-http and to a real llama-server with the same model, and compares what each key costs.

    beside_llama_server.py MODEL.gguf --llama-server PROGRAM --efimd build/release/daemon/cli/efimd

Both are asked for each key, in turn; who is not asked is stopped meanwhile, so that neither works in the other's time.
Recall is off, so that the model answers every key. No test runs this: it wants a llama-server, and a machine that has nothing else to do.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from private_daemon import lock_holder, private_daemon  # noqa: E402

kPrefixLines, kSuffixLines = 256, 64  # what llama.vim sends of a file
kReadyS = 300
# What llama.vim's own page starts a llama-server with.
kServerOptions = ["--parallel", "1", "--batch-size", "1024", "--ubatch-size", "1024", "--cache-reuse", "256"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def window(before, after):
    """The lines around the cursor, as llama.vim cuts them."""
    head, tail = before.split("\n"), after.split("\n")
    return "\n".join(head[max(0, len(head) - 1 - kPrefixLines):]), "\n".join(tail[: 1 + kSuffixLines]) + "\n"


class Server:
    """Where a client asks; `pids` are stopped while it is not its turn."""

    def __init__(self, name, port, token, pids):
        self.name, self.port, self.token, self.pids = name, port, token, pids
        self.keys = []

    def wait(self):
        deadline = time.monotonic() + kReadyS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.1)  # the pace of looking; it decides nothing
        raise SystemExit(f"{self.name} is not ready after {kReadyS} s")

    def signal(self, what):
        for pid in self.pids:
            os.kill(pid, what)

    @contextlib.contextmanager
    def turn(self, pause_s):
        self.signal(signal.SIGCONT)
        yield
        time.sleep(pause_s)  # as between two keys; idle time works in it
        self.signal(signal.SIGSTOP)

    def ask(self, before, after, tokens):
        """(evaluated prompt tokens, ms to the first piece, ms to the end)"""
        cut = before.rfind("\n") + 1
        body = {"id_slot": 0, "input_prefix": before[:cut], "input_suffix": after, "input_extra": [], "prompt": before[cut:],
                "n_predict": tokens, "stop": [], "n_indent": 0, "top_k": 40, "top_p": 0.90, "samplers": ["top_k", "top_p", "infill"],
                "temperature": 0.0, "stream": True, "cache_prompt": True, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=kReadyS)) as connection:
            begin = time.monotonic()
            connection.request("POST", "/infill", json.dumps(body),
                               {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise SystemExit(f"{self.name} answers {answer.status}: {answer.read()[:300]}")
            first, last = None, None
            for line in answer:
                if line.startswith(b"data: {"):
                    first = first or (time.monotonic() - begin) * 1000
                    last = json.loads(line[6:])
            return last["timings"]["prompt_n"], first, (time.monotonic() - begin) * 1000


def stream_keys(servers, text, options):
    start = text.index(options.at)
    for count in range(options.characters + 1):
        before, after = window(text[: start + count], text[start + options.characters:])
        for server in servers if count % 2 else servers[::-1]:
            with server.turn(options.pause_ms / 1000):
                key = server.ask(before, after, options.tokens)
            if count > 0:  # the first one reads the file
                server.keys.append(key)


def report(servers):
    for server in servers:
        evaluated, first, whole = zip(*server.keys)
        print(f"{server.name}: {len(server.keys)} keys, evaluated tokens mean {statistics.mean(evaluated):.2f} most {max(evaluated)}; "
              f"first piece ms median {statistics.median(first):.1f} mean {statistics.mean(first):.1f} most {max(first):.1f}; "
              f"whole ms median {statistics.median(whole):.1f}")
    ours, theirs = (zip(*[(key[0], key[1]) for key in server.keys]) for server in servers)
    (our_tokens, our_ms), (their_tokens, their_ms) = ours, theirs
    print(f"sooner to the first piece: {statistics.median(their_ms) / statistics.median(our_ms):.1f} by medians, "
          f"{statistics.mean(their_ms) / statistics.mean(our_ms):.1f} by means, "
          f"{statistics.median(t / o for t, o in zip(their_ms, our_ms)):.1f} key by key; "
          f"fewer tokens: {sum(their_tokens) / max(1, sum(our_tokens)):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--llama-server", required=True, help="the peer's program")
    parser.add_argument("--server-options", nargs=argparse.REMAINDER, default=kServerOptions, help="last: the peer's own, instead of llama.vim's")
    parser.add_argument("--efimd", type=pathlib.Path, required=True)
    parser.add_argument("--file", type=pathlib.Path, default=kRoot / "daemon" / "server" / "session.cpp")
    parser.add_argument("--at", default="host_.log().info(\"session {}: {}, {}\"", help="where in the file it is typed anew")
    parser.add_argument("--characters", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=128, help="n_predict")
    parser.add_argument("--pause-ms", type=int, default=150, help="after each answer")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    efimd, port, peer_port = str(options.efimd.resolve()), free_port(), free_port()
    config = f'[model]\nfile = "{options.model.resolve()}"\n[http]\nport = {port}\n[completion]\nrecall = false\n'
    with tempfile.TemporaryFile() as log, private_daemon(efimd, config) as environment:
        peer = subprocess.Popen([options.llama_server, "--model", options.model.resolve(), "--host", "127.0.0.1", "--port", str(peer_port),
                                 "--threads", str(options.threads), *options.server_options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            subprocess.run([efimd, "http", "--background"], env=environment, check=True, stdin=subprocess.DEVNULL)
            token = subprocess.run([efimd, "http", "--print-token"], env=environment, check=True, capture_output=True, text=True).stdout.strip()
            run = pathlib.Path(environment["EFIMD_RUNTIME_DIR"])
            servers = [Server("efimd", port, token, []), Server("llama-server", peer_port, "", [peer.pid])]
            for server in servers:
                server.wait()
            servers[0].pids = [lock_holder(run / "daemon.lock")]
            for server in servers:
                server.signal(signal.SIGSTOP)
            try:
                stream_keys(servers, options.file.read_text(), options)
            finally:
                for server in servers:
                    server.signal(signal.SIGCONT)
            report(servers)
        finally:
            peer.kill()
            peer.wait()


if __name__ == "__main__":
    main()
