#!/usr/bin/env python3
"""efimd-http answers each client's request in the form that it parses, from the user's daemon."""

import concurrent.futures
import json
import re
import socket
import unittest

from http_user import HttpTest, kAfter, kBefore, kRoot, kVimFields, poll


def events(text):
    """The data of each event of a stream."""
    found = [line[len("data: "):] for line in text.split("\n\n") if line]
    return [data if data == "[DONE]" else json.loads(data) for data in found]


class Answers(HttpTest):
    def test_llama_vim_gets_a_flat_object_with_its_fields(self):
        answer = self.infill(kBefore, kAfter)
        self.assertTrue(answer["content"], answer)
        self.assertEqual(set(answer), set(kVimFields))
        self.assertIsInstance(answer["timings/predicted_n"], int)
        warm_up = {"input_prefix": "", "input_suffix": "", "input_extra": [], "prompt": "", "n_predict": 0,
                   "samplers": [], "response_fields": [""]}
        self.assertEqual(json.loads(self.post("/infill", warm_up)), {})

    def test_the_same_text_gets_the_same_suggestion_by_every_path(self):
        expected = self.infill(kBefore, kAfter)["content"]
        framed = f"<|fim_prefix|>{kBefore}<|fim_suffix|>{kAfter}<|fim_middle|>"
        zed = json.loads(self.post("/v1/completions", {"model": "efimd", "prompt": framed, "max_tokens": 128,
                                                       "stop": ["<|endoftext|>"]}))
        self.assertEqual(zed["choices"][0]["text"], expected)
        self.assertTrue(zed["id"])
        minuet = events(self.post("/v1/completions", {
            "model": "efimd", "prompt": kBefore, "suffix": kAfter, "max_tokens": 128, "top_p": 0.9, "stream": True,
            "n": 1, "echo": False}))
        self.assertEqual(minuet[-1], "[DONE]")
        self.assertEqual("".join(event["choices"][0]["text"] for event in minuet[:-1]), expected)
        completion = events(self.post("/completion", {"prompt": framed, "stream": True, "n_predict": 128}))
        self.assertEqual("".join(event["content"] for event in completion), expected)
        self.assertTrue(completion[-1]["stop"])
        twinny = events(self.post("/completion", {"prompt": framed, "stream": True, "temperature": 0, "max_tokens": 128}))
        self.assertEqual("".join(event["content"] for event in twinny), expected)
        lines = self.post("/api/generate", {"model": "efimd", "prompt": kBefore, "suffix": kAfter,
                                            "options": {"num_predict": 128}}).splitlines()
        self.assertEqual("".join(json.loads(line)["response"] for line in lines), expected)
        self.assertTrue(json.loads(lines[-1])["done"])
        raw = json.loads(self.post("/api/generate", {"model": "efimd", "prompt": framed, "raw": True, "stream": False,
                                                     "options": {"num_predict": 128, "temperature": 0.0}}))
        self.assertEqual(raw["response"], expected)
        self.assertTrue(raw["created_at"])

    def test_a_suggestion_comes_again_after_its_client_has_asked_ahead(self):
        """As llama.vim and llama.vscode do before the user accepts it: it was not accepted and taken back."""
        shown = self.infill(kBefore, kAfter)["content"]
        self.infill(kBefore + shown, kAfter)
        self.assertEqual(self.infill(kBefore, kAfter)["content"], shown)

    def test_the_models_pages_say_which_model_it_is(self):
        self.infill(kBefore, kAfter)
        page = lambda path, method="GET", body=None: json.loads(self.request(method, path, body)[2])  # noqa: E731
        self.assertEqual(page("/health"), {"status": "ok"})
        name = page("/v1/models")["data"][0]["id"]
        self.assertIn("efim", name)
        self.assertEqual(page("/api/tags")["models"][0]["name"], name)
        self.assertEqual(page("/props")["total_slots"], 1)
        self.assertIn(".Suffix", page("/api/show", "POST", {"name": name})["template"])

    def test_what_is_not_honoured_is_named_and_what_is_broken_refused(self):
        status, headers, _ = self.request("POST", "/infill", {
            "input_prefix": "", "input_suffix": "", "n_predict": 0, "grammar": "root ::= x",
            "input_extra": [{"text": "t", "filename": "f"}]})
        self.assertEqual((status, headers["Efimd-Ignored"]), (200, "input_extra, grammar"))
        self.assertEqual(self.request("POST", "/infill", {"input_prefix": "a"})[0], 400)
        self.assertEqual(self.request("POST", "/infill", b"{")[0], 400)
        self.assertEqual(self.request("POST", "/v1/chat/completions", {})[0], 404)
        self.assertEqual(self.request("GET", "/infill")[0], 405)

    def test_tokens_and_stop_strings_bound_the_text(self):
        before, after = kBefore.replace("fibonacci(n - 1) + ", "fibon"), kAfter
        whole = self.infill(before, after)["content"]
        self.assertIn("(", whole)
        self.assertEqual(self.infill(before, after, stop=["("])["content"], whole[: whole.index("(")])
        self.assertLessEqual(self.infill(kBefore, kAfter, n_predict=1)["timings/predicted_n"], 1)

    def test_one_connection_serves_many_requests(self):
        self.infill(kBefore, kAfter)
        connection = self.connection()
        for _ in range(3):
            self.assertEqual(self.request("GET", "/health", connection=connection)[0], 200)
        self.assertEqual(self.request("HEAD", "/health", connection=connection)[2], "")

    def test_a_daemon_that_was_stopped_comes_back_with_the_next_request(self):
        before = self.infill(kBefore, kAfter)["content"]
        self.kill_daemon()
        self.assertEqual(self.infill(kBefore, kAfter)["content"], before)

    def test_nothing_of_the_text_comes_to_the_disk(self):
        self.infill("zebra_crossing = 1\n" * 40 + kBefore, kAfter)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        for file in self.folder.rglob("*"):
            if file.is_file():
                self.assertNotIn(b"zebra", file.read_bytes(), file)
        kept = json.loads(self.run_efimd("cache", "list", "--json").stdout)["files"]
        self.assertEqual(kept, [])


class Start(HttpTest):
    options = ""  # the test writes more of [http]

    def test_a_second_one_says_that_one_runs_and_stop_ends_it(self):
        for port in ([], ["--port", self.port]):
            second = self.run_efimd("http", "--background", *port)
            self.assertEqual((second.returncode, second.stdout, second.stderr), (0, "efimd-http runs already\n", ""))
        other = self.run_efimd("http", "--background", "--port", self.port + 1)
        self.assertEqual(other.returncode, 1)
        self.assertIn("efimd-http does not start: efimd-http runs already", other.stderr)
        self.assertEqual(self.run_efimd("http", "--stop").stdout, "efimd-http has finished\n")
        self.assertEqual(self.run_efimd("http", "--stop").stdout, "no efimd-http is running\n")

    def test_of_several_that_start_at_once_one_runs_and_none_fails(self):
        self.assertEqual(self.run_efimd("http", "--stop").returncode, 0)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            started = list(threads.map(lambda _: self.run_efimd("http", "--background"), range(8)))
        self.assertEqual([(each.returncode, each.stderr) for each in started], [(0, "")] * 8)
        self.assertEqual([each.stdout for each in started].count(""), 1)

    def test_the_daemon_starts_it_where_it_is_enabled(self):
        self.assertEqual(self.run_efimd("http", "--stop").returncode, 0)
        config = self.folder / "config.toml"
        config.write_text(config.read_text() + "\nenable = true\n")
        self.ready_editor()
        self.assertEqual(poll(lambda: self.reached(), "efimd-http"), 200)
        self.assertIn("efimd-http has finished", self.run_efimd("stop").stdout)

    def test_status_and_doctor_say_whether_it_listens_and_why_not(self):
        self.ready_editor()
        here = f"listening on 127.0.0.1:{self.port}"
        self.assertEqual(self.status()["http"] | {"enabled": False}, {
            "enabled": False, "running": True, "port": self.port, "trouble": "", "text": here})
        for command in ("status", "doctor"):
            self.assertIn(here, self.run_efimd(command).stdout)

    def test_a_new_token_takes_the_place_of_the_one_before_it(self):
        before = self.token
        self.assertEqual(self.run_efimd("http", "--print-token").stdout.strip(), before)
        (self.folder / "state" / "http_token").unlink()
        self.token = self.run_efimd("http", "--print-token").stdout.strip()
        self.assertNotEqual(self.token, before)
        poll(lambda: self.reached() == 200, "the new token's use")
        self.assertEqual(self.request("GET", "/v1/models", headers={"Authorization": f"Bearer {before}"})[0], 401)

    def test_a_taken_port_is_told(self):
        self.assertEqual(self.run_efimd("http", "--stop").returncode, 0)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            (self.folder / "config.toml").write_text(f"[http]\nport = {port}\nenable = true\n")
            self.ready_editor()
            why = f"port {port} cannot be used: "
            http = self.status()["http"]
            self.assertEqual((http["running"], http["port"]), (False, None))
            self.assertTrue(http["trouble"].startswith(why), http)
            self.assertIn(f"not running: {why}", self.run_efimd("status").stdout)
            doctor = self.run_efimd("doctor")
            self.assertEqual(doctor.returncode, 1)
            self.assertIn(f"wrong  http           not running: {why}", doctor.stdout)
            log = (self.folder / "state" / "efimd.log").read_text()
            self.assertIn(f"efimd-http does not start: {why}", log)
            self.assertNotIn("the daemon does not start", log)

    def reached(self):
        try:
            return self.request("GET", "/")[0]
        except OSError:
            return None


class Page(HttpTest):
    """As users have it: the bundled model, and no key set."""

    model = None
    options = ""

    def test_the_request_of_the_page_shows_that_it_works(self):
        page = (kRoot / "docs/clients.md").read_text(encoding="utf-8")
        path, body = re.search(r"curl http://127\.0\.0\.1:8012(\S+) .*?-d '(.*?)'", page, re.DOTALL).groups()
        answer = json.loads(self.post(path, body.encode()))
        self.assertIn(f"answers `{answer['choices'][0]['text']}`", page, answer)


if __name__ == "__main__":
    unittest.main()
