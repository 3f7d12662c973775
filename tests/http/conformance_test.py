#!/usr/bin/env python3
"""efimd-http's answers, field by field beside those of a real llama-server.

llama_server/ has what Debian's llama-server (0.7.0, build 11669) answered to the requests below with the bundled model, on 2026-11-24. Each field of
it must be in efimd's answer with the same type, but for those that kLeftOut names.
"""

import json
import pathlib
import unittest

from http_user import HttpTest

kRecorded = pathlib.Path(__file__).with_name("llama_server")
# Settings of samplers that efimd does not have, and switches of llama-server's own pages.
kLeftOut = {"generation_settings", "params", "media_marker", "endpoint_slots", "endpoint_props", "endpoint_metrics", "ui", "ui_settings",
            "chat_template_caps", "cors_proxy_enabled", "architecture", "video", "vocab_type", "n_vocab", "n_embd"}
kBefore = "int add(int a, int b) {\n  return a "
kInfill = {"input_prefix": "int add(int a, int b) {\n", "prompt": "  return a ", "input_suffix": "\n}\n", "n_predict": 8, "temperature": 0}


def recorded(name):
    return json.loads((kRecorded / f"{name}.json").read_text())


def events(text):
    found = [line.removeprefix("data: ") for line in text.split("\n\n") if line.strip()]
    return [data if data == "[DONE]" else json.loads(data) for data in found]


def kind(value):
    """Numbers are one type in JSON."""
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


def differences(theirs, ours, place=""):
    """The fields of `theirs` that `ours` lacks, or has with another type."""
    if kind(theirs) is not kind(ours):
        return [f"{place or 'the answer'}: {type(theirs).__name__}, not {type(ours).__name__}"]
    if isinstance(theirs, list):
        return differences(theirs[0], ours[0], f"{place}[0]") if theirs and ours else []
    found = []
    for name, value in theirs.items() if isinstance(theirs, dict) else ():
        if name in kLeftOut:
            continue
        found += differences(value, ours[name], f"{place}/{name}") if name in ours else [f"{place}/{name} is missing"]
    return found


class Conformance(HttpTest):
    def check(self, name, ours):
        self.assertEqual(differences(recorded(name), json.loads(ours)), [], name)

    def test_each_answer_has_llama_servers_fields(self):
        self.check("infill", self.post("/infill", kInfill))
        fields = list(recorded("infill_fields"))
        self.check("infill_fields", self.post("/infill", kInfill | {"response_fields": fields}))
        self.check("completion", self.post("/completion", {"prompt": kBefore, "n_predict": 8, "temperature": 0}))
        self.check("v1_completions", self.post("/v1/completions", {"prompt": kBefore, "max_tokens": 8, "temperature": 0}))
        for name, path in (("v1_models", "/v1/models"), ("health", "/health"), ("props", "/props")):
            self.check(name, self.request("GET", path)[2])

    def test_each_event_of_a_stream_has_llama_servers_fields(self):
        for name, path, body in (("completion_stream", "/completion", {"n_predict": 8}), ("v1_stream", "/v1/completions", {"max_tokens": 8})):
            theirs = events((kRecorded / f"{name}.txt").read_text())
            # What this prompt has no suggestion for has no piece of text.
            ours = events(self.post(path, body | {"prompt": "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + ",
                                                  "temperature": 0, "stream": True}))
            self.assertEqual(theirs[-1] == "[DONE]", ours[-1] == "[DONE]", name)
            theirs, ours = ([each for each in answer if each != "[DONE]"] for answer in (theirs, ours))
            self.assertGreaterEqual(len(ours), 2, name)
            self.assertEqual(differences(theirs[0], ours[0]), [], name)
            self.assertEqual(differences(theirs[-1], ours[-1]), [], name)

    def test_a_request_without_a_field_is_refused_as_llama_server_does(self):
        status, _, text = self.request("POST", "/infill", {"prompt": "x"})
        self.assertEqual((status, differences(recorded("infill_bad"), json.loads(text))), (400, []))

    def test_zeds_request_gets_what_zed_parses(self):
        """Zed wants id and choices[].text."""
        answer = json.loads(self.post("/v1/completions", {
            "model": "efimd", "prompt": f"<|fim_prefix|>{kBefore}<|fim_suffix|>\n}}\n<|fim_middle|>", "max_tokens": 64,
            "stop": ["<|endoftext|>", "<|file_sep|>", "<|repo_name|>", "<|fim_pad|>"], "temperature": 0.2}))
        self.assertIsInstance(answer["id"], str)
        self.assertIsInstance(answer["choices"][0]["text"], str)

    def test_minuets_request_gets_what_minuet_parses(self):
        """minuet reads choices[1].text of each line after "data: ", and leaves lines that are no JSON."""
        text = self.post("/v1/completions", {"model": "efimd", "prompt": kBefore, "suffix": "\n}\n", "max_tokens": 128, "top_p": 0.9,
                                             "stop": ["\n\n"], "stream": True})
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        self.assertEqual(lines[-1], "[DONE]")
        for line in lines[:-1]:
            self.assertIsInstance(json.loads(line)["choices"][0]["text"], str)


if __name__ == "__main__":
    unittest.main()
