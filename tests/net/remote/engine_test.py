#!/usr/bin/env python3
"""An engine elsewhere: its text is suggested, and whatever it does instead of answering, this machine's model answers."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(kRoot / "tests" / "process"))
from engine_server import EngineServer, kText as kRemoteText, wait_until  # noqa: E402
from user import UserTest, kCursor, kText, kUri  # noqa: E402

kLimitMs = 1000
kPem = "-----BEGIN PRIVATE KEY-----\n" + ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 4) + "-----END PRIVATE KEY-----\n"


class Remote(UserTest):
    more, server_options = "", {}

    def setUp(self):
        super().setUp()
        self.server = EngineServer(**self.server_options)
        self.addCleanup(lambda: self.server.close())
        self.configure()

    def configure(self, url=None):
        (self.folder / "config.toml").write_text(
            f'[engine]\nurl = "{url or self.server.url}"\ntime_limit_ms = {kLimitMs}\n{self.more}\n[completion]\nconfidence = 0\nrecall = false\n')

    def start(self, text=kText):
        editor = self.ready_editor(text, receipts=True)
        # While the model is loading nothing is asked anywhere.
        wait_until(lambda: (self.status() or {}).get("state", {}).get("name") == "ready", "the model")
        return editor

    def ask(self, editor, position=kCursor, uri=kUri):
        """(the suggestion's text or "", its receipt, milliseconds)."""
        begin = time.monotonic()
        request = editor.start("textDocument/inlineCompletion", {
            "textDocument": {"uri": uri}, "position": dict(zip(("line", "character"), position)), "context": {"triggerKind": 2}})
        items = editor.answer(request)["result"]["items"]
        receipt = editor.wait_for_notification("efim/receipt", lambda params: params["request"] == request)
        return (items[0]["insertText"] if items else "", receipt, (time.monotonic() - begin) * 1000)

    def elsewhere(self):
        return self.status()["elsewhere"]

    def anew(self, editor, text):
        """Another text, so that nothing that is remembered answers."""
        self.version = getattr(self, "version", 1) + 1
        editor.notify("textDocument/didChange", {"textDocument": {"uri": kUri, "version": self.version}, "contentChanges": [{"text": text}]})

    def warnings(self, editor):
        return [message["params"]["message"] for message in editor.heard if message["method"] == "window/showMessage"]

    def recover(self, editor, name):
        self.server.mode = "ok"

        def recovered():
            recovered.count += 1
            self.anew(editor, kText.replace("fibonacci", f"g{name[:2]}{recovered.count}"))
            return self.ask(editor, (3, 30 - len("fibonacci") + len(f"g{name[:2]}{recovered.count}")))[1]["source"] == "elsewhere"
        recovered.count = 0
        wait_until(recovered, f"recovery after {name}")
        self.assertEqual(self.elsewhere()["trouble"], "")


class Answers(Remote):
    def test_its_text_is_suggested_and_the_receipt_has_what_it_cached(self):
        editor = self.start()
        text, receipt, _ = self.ask(editor)
        self.assertEqual(text, kRemoteText.rstrip("\n"))
        self.assertEqual((receipt["source"], receipt["promptTokens"], receipt["reusedTokens"], receipt["evaluatedTokens"]), ("elsewhere", 100, 97, 3))
        before, after = kText[: kText.index("+ ") + 2], kText[kText.index("+ ") + 2:]
        prompt = self.server.requests[0]["prompt"]
        self.assertTrue(prompt.startswith("<|fim_prefix|>") and "<|fim_suffix|>" in prompt, prompt)
        # EFIM: what is typed stands last.
        self.assertTrue(prompt.endswith("<|fim_middle|>" + before.rsplit("\n", 1)[1]), prompt)
        self.assertNotIn(after.strip() or "\0", prompt.split("<|fim_middle|>")[1])
        self.assertEqual((self.elsewhere()["answers"], self.elsewhere()["trouble"]), (True, ""))

    def test_typing_changes_only_the_end_of_the_prompt_and_one_connection_serves_it(self):
        self.server.text = "zzz"  # never what is typed
        editor = self.start()
        for typed in ("", "fib", "fibon"):
            self.anew(editor, kText.replace("+ ", "+ " + typed))
            self.ask(editor, (3, 30 + len(typed)))
        prompts = [request["prompt"] for request in self.server.requests]
        self.assertEqual(prompts[1], prompts[0] + "fib")
        self.assertEqual(prompts[2], prompts[0] + "fibon")
        self.assertLessEqual(self.server.connections, 2)

    def test_what_is_superseded_is_cancelled_there(self):
        self.server.mode, self.server.text = "slow", "a " * 100
        editor = self.start()
        first = editor.start("textDocument/inlineCompletion", {
            "textDocument": {"uri": kUri}, "position": {"line": 3, "character": 30}, "context": {"triggerKind": 2}})
        wait_until(lambda: self.server.requests, "the first request")
        self.server.mode = "ok"
        self.assertTrue(self.ask(editor, (1, 8)))
        self.assertIsNone(editor.answer(first)["result"])
        wait_until(lambda: self.server.cancelled, "the closed connection")

    def test_a_server_that_takes_no_logprobs_is_asked_without(self):
        self.server.mode = "refuses-logprobs"
        editor = self.start()
        self.assertEqual(self.ask(editor)[0], kRemoteText.rstrip("\n"))
        self.assertEqual(["logprobs" in request for request in self.server.requests], [True, False])


class BehindAProxy(Remote):
    def test_a_server_of_this_machine_is_asked_without_it(self):
        """A proxy is another machine, which the text would be sent to."""
        for name in ("http_proxy", "ALL_PROXY"):
            self.environment[name] = "http://127.0.0.1:9"  # nobody is there
        self.assertEqual(self.ask(self.start())[1]["source"], "elsewhere")


class Troubles(Remote):
    def check_trouble(self, editor, mode, text):
        """In this mode the local model answers in time; the trouble is told once; then it recovers by itself."""
        told = len(self.warnings(editor))
        self.server.mode = mode
        for count in range(3):
            self.anew(editor, kText.replace("fibonacci", f"f{mode[:2]}{count}"))
            _, receipt, ms = self.ask(editor, (3, 30 - len("fibonacci") + len(f"f{mode[:2]}{count}")))
            self.assertEqual(receipt["source"], "engine", (mode, receipt))
            # The limit is the server's; the rest is what a busy machine's own model may take.
            self.assertLess(ms, kLimitMs + 20_000)
        wait_until(lambda: len(self.warnings(editor)) > told, "the warning")
        self.assertEqual(len(self.warnings(editor)), told + 1)
        self.assertIn(text, self.warnings(editor)[-1])
        self.assertIn(text, self.elsewhere()["trouble"])
        self.recover(editor, mode)

    def test_a_server_that_answers_anything_else(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        for mode, text in (("html", "no stream"), ("nonsense", "no text"), ("error", "out of memory"), ("silent", "nothing"),
                           ("redirect", "302"), ("hung", "in time")):
            with self.subTest(mode):
                self.check_trouble(editor, mode, text)

    def test_a_server_that_is_killed_and_comes_back(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        port = self.server.port
        self.server.close()
        self.anew(editor, kText.replace("fibonacci", "fibber"))
        self.assertEqual(self.ask(editor, (3, 27))[1]["source"], "engine")
        wait_until(lambda: self.warnings(editor), "the warning")
        self.server = EngineServer(port=port)
        self.recover(editor, "killed")

    def test_a_server_that_was_started_again_with_another_model_is_asked_in_its_words(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        self.assertTrue(self.server.requests[-1]["prompt"].startswith("<|fim_prefix|>"))
        port = self.server.port
        self.server.close()
        self.server = EngineServer(port=port, model="starcoder2-3b")  # nobody asked meanwhile

        def asked_anew():
            asked_anew.count += 1
            self.anew(editor, kText.replace("fibonacci", f"again{asked_anew.count}"))
            self.ask(editor, (3, 21 + len(f"again{asked_anew.count}")))
            return any(request["prompt"].startswith("<fim_prefix>") for request in self.server.requests)
        asked_anew.count = 0
        wait_until(asked_anew, "a prompt for the new model")

    def test_the_program_that_connects_is_killed_and_starts_again(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        starter = int((self.runtime / "remote.lock").read_text())
        serving = int(pathlib.Path(f"/proc/{starter}/task/{starter}/children").read_text().split()[0])
        for name, pid in (("serving", serving), ("rest", starter)):
            with self.subTest(name):
                told = len(self.warnings(editor))
                os.kill(pid, signal.SIGKILL)
                self.recover(editor, name)
                self.assertLessEqual(len(self.warnings(editor)) - told, 1)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        wait_until(lambda: not (self.runtime / "remote.sock").exists(), "its end")

    def test_text_that_was_cut_off_is_still_text(self):
        self.server.mode = "cut"
        editor = self.start()
        text, receipt, _ = self.ask(editor)
        self.assertTrue(text and "fibonacci(n".startswith(text), text)
        self.assertEqual(receipt["source"], "elsewhere")

    def test_a_slow_server_is_shown_as_far_as_it_came(self):
        self.server.mode, self.server.text = "slow", "a(b, c, d, e, f, g, h, i, j, k, l, m)"
        editor = self.start()
        text, receipt, ms = self.ask(editor)
        self.assertEqual(receipt["source"], "elsewhere")
        self.assertTrue("a(b, c, d, e, f, g, h, i, j, k, l, m)".startswith(text))
        self.assertLess(ms, 30_000)

    def test_an_unknown_model_is_not_guessed_at(self):
        self.server.model = "some-chat-model"
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        self.assertIn("some-chat-model", self.elsewhere()["trouble"])
        self.assertEqual(self.server.requests, [])


class KeyFile(Remote):
    server_options = {"key": "sesame"}

    def setUp(self):
        super().setUp()
        self.key = self.folder / "key"
        self.key.write_text("sesame\n")
        self.key.chmod(0o600)
        self.more = f'key_file = "{self.key}"'
        self.configure()

    def test_the_key_is_sent_and_kept_from_others(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertNotIn(b"sesame", process.read_bytes())
            except OSError:
                pass

    def test_a_key_that_others_read_is_not_used(self):
        self.key.chmod(0o644)
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        self.assertEqual(self.server.paths, [])

    def test_a_wrong_key_is_named(self):
        self.key.write_text("wrong\n")
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        self.assertIn("401", self.elsewhere()["trouble"])


class Secrets(Remote):
    more = ""

    def configure(self, url=None):
        super().configure(url)
        config = self.folder / "config.toml"
        config.write_text(config.read_text() + 'secret_files = true\n[cache]\nexclude = ["*.private"]\n')

    def test_secret_and_excluded_files_never_leave(self):
        editor = self.start()
        for name, text in ((".env", "PASSWORD=swordfish\nTOKEN="), ("a.private", "x = 1\ny = "), ("note.txt", kPem + "x = ")):
            uri = f"file:///project/{name}"
            editor.open(uri, text)
            self.assertNotEqual(self.ask(editor, (text.count("\n"), len(text.rsplit("\n", 1)[1])), uri)[1]["source"], "elsewhere", name)
        self.assertEqual(self.server.requests, [])


class Off(UserTest):
    def test_without_an_address_there_is_no_such_program(self):
        self.ready_editor()
        self.assertIsNone(self.status()["elsewhere"])
        self.assertFalse((self.runtime / "remote.sock").exists())


class Tls(Remote):
    def setUp(self):
        super().setUp()
        self.pair = self.folder / "cert.pem", self.folder / "key.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=IP:127.0.0.1", "-keyout", self.pair[1], "-out", self.pair[0]], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("no openssl")
        self.server.close()
        self.server = EngineServer(certificate=self.pair)
        self.configure()

    def test_a_certificate_that_the_system_does_not_know_is_refused(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        self.assertIn("certificate", self.elsewhere()["trouble"])
        self.assertEqual(self.server.paths, [])

    def test_a_certificate_that_the_user_names_is_trusted(self):
        self.environment.pop("CURL_CA_BUNDLE", None)  # which counts before it
        self.environment["SSL_CERT_FILE"] = str(self.pair[0])
        self.assertEqual(self.ask(self.start())[1]["source"], "elsewhere")


class Ends(Remote):
    def test_it_ends_with_the_daemon_and_starts_anew_with_another_address(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertFalse((self.runtime / "remote.sock").exists())

    def test_it_runs_without_the_daemons_sandbox_and_the_daemon_connects_nowhere(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        pid = self.daemon_pid()
        sockets = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir() if os.path.lexists(link)}
        inodes = {name[len("socket:["):-1] for name in sockets if name.startswith("socket:")}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                self.assertNotIn(line.split()[9], inodes)


if __name__ == "__main__":
    unittest.main()
