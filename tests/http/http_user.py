"""A user whose efimd-http runs: requests as its clients send them, over a connection each."""

import http.client
import json
import os
import pathlib
import random
import sys

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "process"))
from user import UserTest, kPatienceS, kText, poll  # noqa: E402,F401  for the tests

# kText, cut at a place where the bundled model goes on.
kBefore, kAfter = kText[: kText.index("+ ") + 2], kText[kText.index("+ ") + 2:]
kVimFields = ["content", "timings/prompt_n", "timings/prompt_ms", "timings/prompt_per_token_ms",
              "timings/prompt_per_second", "timings/predicted_n", "timings/predicted_ms",
              "timings/predicted_per_token_ms", "timings/predicted_per_second", "truncated", "tokens_cached"]


class HttpTest(UserTest):
    """self.port, self.token and requests to a server of this test's own."""

    options = "[completion]\nconfidence = 0"  # what is answered is the subject, not whether it is worth showing

    def setUp(self):
        super().setUp()
        self.port = self.start()
        self.token = self.run_efimd("http", "--print-token").stdout.strip()

    def start(self):
        """A port that tests beside this one do not try: a server that starts again must find it free."""
        config = self.folder / "config.toml"
        for port in random.Random(os.getpid()).sample(range(20000, 32000), 40):
            config.write_text(f"[http]\nport = {port}\n{self.options}\n")
            started = self.run_efimd("http", "--background")
            if started.returncode == 0:
                return port
            self.assertIn("cannot be used", started.stderr)
        raise AssertionError("no port is free")

    def connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=kPatienceS)
        self.addCleanup(connection.close)
        return connection

    def request(self, method, path, body=None, headers=None, connection=None):
        """(status, headers, text). `headers` come over those that a client sends; None leaves one out."""
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | (headers or {})
        own = connection is None
        connection = connection or self.connection()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        text = answer.read().decode()
        if own:
            connection.close()  # the server has a limit of them
        return answer.status, answer.headers, text

    def post(self, path, body, headers=None):
        """The answer's JSON, once the model is loaded."""
        def once():
            answer = self.request("POST", path, body, headers)
            return None if answer[0] == 503 else answer
        status, _, text = poll(once, f"an answer to {path}")
        self.assertEqual(status, 200, text)
        return text

    def infill(self, before, after, **more):
        """As llama.vim asks: the line up to the cursor is the prompt."""
        cut = before.rfind("\n") + 1
        body = {"id_slot": 0, "input_prefix": before[:cut], "input_suffix": after, "input_extra": [],
                "prompt": before[cut:], "n_predict": 128, "stop": [], "n_indent": 0, "top_k": 40, "top_p": 0.90,
                "samplers": ["top_k", "top_p", "infill"], "stream": False, "cache_prompt": True,
                "t_max_prompt_ms": 500, "t_max_predict_ms": 250, "response_fields": kVimFields}
        return json.loads(self.post("/infill", body | more))
