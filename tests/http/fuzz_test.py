#!/usr/bin/env python3
"""Requests that are broken in many ways: efimd-http and the daemon go on serving, and their memory stays bounded.

EFIMD_FUZZ_REQUESTS says how many; scripts/test sends some hundreds, which takes seconds.
"""

import json
import os
import pathlib
import random
import socket
import unittest

from http_user import HttpTest, kAfter, kBefore

kRequests = int(os.environ.get("EFIMD_FUZZ_REQUESTS", "500"))
kGrowthMax = 96 << 20  # bytes: what the last documents and their answers may take
kPaths = ["/infill", "/completion", "/v1/completions", "/api/generate", "/v1/fim/completions", "/v1/models", "/health", "/props", "/api/tags",
          "/api/show", "/nothing"]
kSeeds = [
    {"input_prefix": kBefore, "prompt": "", "input_suffix": kAfter, "n_predict": 0},
    {"prompt": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "max_tokens": 1, "stop": ["x"], "stream": True},
    {"model": "m", "prompt": "p", "suffix": "s", "options": {"num_predict": 1}},
]
kValues = [None, True, -1, 1e308, 0, "", "\ud800", "\x00", [], {}, [[[[]]]], "x" * 5000, {"a": {"b": {}}}, 2 ** 63, "<|fim_suffix|>"]


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def broken_json(dice):
    body = dict(dice.choice(kSeeds))
    for _ in range(dice.randrange(4)):
        name = dice.choice([*body, "temperature", "n", "input_extra", "response_fields", "samplers"])
        body[name] = dice.choice(kValues)
    data = bytearray(json.dumps(body).encode())
    for _ in range(dice.choice([0, 0, 1, 8])):
        if data:
            data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.1 else data)


def broken_request(dice, token):
    body = broken_json(dice)
    length = dice.choice([len(body)] * 12 + [0, len(body) + 7, 10 ** 12, -1])
    head = [f"{dice.choice(['POST'] * 8 + ['GET', 'PUT', 'OPTIONS', chr(dice.randrange(1, 256))])} {dice.choice(kPaths)} HTTP/1.{dice.randrange(2)}",
            f"Host: {dice.choice(['127.0.0.1'] * 8 + ['', 'evil', '127.0.0.1:1'])}",
            f"Authorization: {dice.choice([f'Bearer {token}'] * 12 + ['Bearer', 'Basic x', 'x' * 300])}",
            f"Content-Type: {dice.choice(['application/json'] * 12 + ['text/plain', ''])}", f"Content-Length: {length}"]
    for _ in range(dice.choice([0, 0, 0, 1, 40])):
        head.append(f"{chr(dice.randrange(33, 127))}{dice.randrange(999)}: {chr(dice.randrange(256)) * dice.randrange(400)}")
    raw = bytearray("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
    for _ in range(dice.choice([0, 0, 0, 2])):
        raw[dice.randrange(len(raw))] = dice.randrange(256)
    return bytes(raw)


class Fuzz(HttpTest):
    def http_pid(self):
        """The process that serves; the one in the lock starts it again if something kills it."""
        starter = int((self.runtime / "http.lock").read_text())
        return int(pathlib.Path(f"/proc/{starter}/task/{starter}/children").read_text().split()[0])

    def check_serves(self):
        """By a text that no broken request has, so that none has rejected what is suggested there; without llama.vim's time limits."""
        answer = self.infill("def double(number):\n    result = number +", "\n    return result\n", t_max_prompt_ms=60_000, t_max_predict_ms=60_000)
        self.assertTrue(answer["content"], answer)

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass  # it may hang up on what it does not want

    def test_broken_requests_harm_nothing(self):
        self.check_serves()
        # The largest answers once, so that what they take is not counted as growth.
        dice = random.Random(20261124)
        for _ in range(min(kRequests, 500)):
            self.send(broken_request(dice, self.token))
        pids = self.http_pid(), self.daemon_pid()
        before = [resident(pid) for pid in pids]
        for _ in range(kRequests):
            self.send(broken_request(dice, self.token))
        self.assertEqual((self.http_pid(), self.daemon_pid()), pids)
        after = [resident(pid) for pid in pids]
        print(f"\n{kRequests} requests: efimd-http {before[0] >> 20} to {after[0] >> 20} MiB, daemon {before[1] >> 20} to {after[1] >> 20} MiB")
        for was, now in zip(before, after):
            self.assertLess(now - was, kGrowthMax)
        self.check_serves()


if __name__ == "__main__":
    unittest.main()
