"""Bad input gets a clear message, and nothing crashes or hangs: models, frames, messages, documents."""

import json
import os
import struct
import unittest

from lsp_peer import LspError, framed
from user import UserTest, kCursor, kModel, kPatienceS, kText, kUri

kInvalidParams, kMethodNotFound, kParseError = -32602, -32601, -32700
kLargeBytes = 50 * 2**20


class ModelTest(UserTest):
    model = None

    def assert_refused(self, model, *parts):
        """An editor gets initialize, then empty answers with a reason; the status says the same; the daemon lives."""
        self.environment["EFIMD_MODEL"] = str(model)
        editor = self.ready_editor()
        pid = self.daemon_pid()
        items, receipt = editor.complete_when_loaded(kUri, *kCursor)
        self.assertEqual(items, [])
        state = self.status()["state"]
        self.assertEqual(state["name"], "failed", state)
        for part in parts:
            self.assertIn(part, receipt["reason"])
            self.assertIn(part, state["message"])
        self.assert_alive(pid)
        self.assert_fails(self.run_efimd("complete", self.source() + ":1:1"), *parts)
        doctor = self.run_efimd("doctor")
        self.assertEqual(doctor.returncode, 1)
        self.assertIn(parts[0], doctor.stdout)

    def source(self):
        path = self.folder / "a.py"
        path.write_text(kText)
        return str(path)

    def model(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def test_a_missing_file(self):
        self.assert_refused(self.folder / "none.gguf", "none.gguf")

    def test_a_file_that_is_put_there_later(self):
        late = self.folder / "models" / "late.gguf"
        late.parent.mkdir()
        self.assert_refused(late, "late.gguf")
        pid = self.daemon_pid()
        for done in (self.run_efimd("status").stdout, self.run_efimd("complete", self.source() + ":1:1").stderr):
            self.assertIn("'efimd stop'", done)
        late.write_bytes(kModel.read_bytes())
        place = f"{self.source()}:{kCursor[0] + 1}:{kCursor[1] + 1}"
        done = self.run_efimd("complete", place, "--max-tokens", 8, "--stop", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.ready_editor().complete(kUri, *kCursor)[0])
        self.assert_alive(pid)

    def test_a_truncated_file(self):
        data = kModel.read_bytes()
        self.assert_refused(self.model("half.gguf", data[: len(data) // 2]), "half.gguf")

    def test_a_file_cut_in_its_metadata(self):
        self.assert_refused(self.model("stub.gguf", kModel.read_bytes()[:1000]), "stub.gguf")

    def test_a_foreign_file(self):
        self.assert_refused(self.model("photo.gguf", b"\x89PNG\r\n\x1a\n" + bytes(5000)), "photo.gguf")

    def test_an_empty_file(self):
        self.assert_refused(self.model("empty.gguf", b""), "empty.gguf")

    def test_a_file_that_claims_more_than_it_has(self):
        header = b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60)
        self.assert_refused(self.model("huge.gguf", header + bytes(100)), "huge.gguf")

    def test_a_file_cut_while_it_is_in_use(self):
        model = self.model("cut.gguf", kModel.read_bytes())
        self.environment["EFIMD_MODEL"] = str(model)
        editor = self.ready_editor()
        editor.complete_when_loaded(kUri, *kCursor)
        pid = self.daemon_pid()
        os.truncate(model, 2**20)
        editor.change(kUri, 2, ((0, 4), (0, 4), "f"))
        items, receipt = editor.complete(kUri, *kCursor)
        self.assertEqual(items, [])
        self.assertIn("cut.gguf was changed while it is in use", receipt["reason"])
        self.assert_alive(pid)
        self.assert_nothing_shown(editor)
        # As the message says.
        model.write_bytes(kModel.read_bytes())
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertTrue(editor.complete_when_loaded(kUri, *kCursor)[0])

    def test_model_info_says_what_is_wrong(self):
        self.assert_fails(self.run_efimd("model", "info", self.model("photo.gguf", b"\x89PNG" * 99)),
                          "photo.gguf")
        self.assert_fails(self.run_efimd("model", "info", self.folder), self.folder)


class FrameTest(UserTest):
    """At the bridge and at the daemon's own socket."""

    def setUp(self):
        super().setUp()
        self.ready = self.ready_editor()
        self.pid = self.daemon_pid()

    kInitialize = framed({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                          "params": {"capabilities": {}, "processId": None, "rootUri": None}})

    def test_frames_may_be_split_anywhere(self):
        for peer in (self.editor(), self.connection()):
            for i in range(len(self.kInitialize)):
                peer.send_bytes(self.kInitialize[i: i + 1])
            self.assertIn("capabilities", peer.answer(1)["result"])

    def test_frames_may_come_many_at_once(self):
        for peer in (self.editor(), self.connection()):
            status = [framed({"jsonrpc": "2.0", "id": i, "method": "efim/status"})
                      for i in range(2, 50)]
            peer.send_bytes(self.kInitialize + b"".join(status))
            for i in range(2, 50):
                self.assertEqual(peer.answer(i)["result"]["pid"], self.pid)

    def test_wrong_lengths_end_the_connection_and_nothing_else(self):
        bad = [b"Content-Length: -1\r\n\r\n{}", b"Content-Length: x\r\n\r\n{}", b"\r\n\r\n{}",
               b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
               b"X" * 10000]
        for data in bad:
            with self.subTest(data=data[:40]):
                editor = self.editor()
                editor.send_bytes(data)
                self.assertEqual(editor.child.wait(kPatienceS), 1)
                self.assertIn(b"efimd: ", editor.child.stderr.read())
                direct = self.connection()
                direct.send_bytes(data)
                direct.wait_for_end()
        self.assert_alive(self.pid)
        self.assertTrue(self.ready.complete_when_loaded(kUri, *kCursor)[0])

    def test_a_length_that_is_too_short_ends_the_connection_at_the_next_frame(self):
        for peer in (self.editor(), self.connection()):
            peer.send_bytes(b'Content-Length: 5\r\n\r\n{"jsonrpc":"2.0"}' + self.kInitialize)
            self.assertEqual(peer.answer(None)["error"]["code"], kParseError)
            peer.wait_for_end()
        self.assert_alive(self.pid)

    def test_an_end_inside_a_frame(self):
        editor = self.editor()
        editor.send_bytes(b"Content-Length: 500\r\n\r\n{")
        editor.child.stdin.close()
        self.assertEqual(editor.child.wait(kPatienceS), 0)
        direct = self.connection()
        direct.send_bytes(b"Content-Length: 500\r\n\r\n{")
        direct.connection.close()
        self.assert_alive(self.pid)


class MessageTest(UserTest):
    def setUp(self):
        super().setUp()
        self.editor_ = self.ready_editor()
        self.editor_.complete_when_loaded(kUri, *kCursor)
        self.pid = self.daemon_pid()

    def tearDown(self):
        self.assert_alive(self.pid)
        self.assertTrue(self.editor_.complete(kUri, *kCursor)[0], "the session is broken")

    def assert_error(self, code, method, params):
        with self.assertRaises(LspError) as raised:
            self.editor_.ask(method, params)
        self.assertEqual(raised.exception.code, code)
        self.assertTrue(raised.exception.message)

    def test_unknown_methods(self):
        self.assert_error(kMethodNotFound, "textDocument/hover", {})
        self.assert_error(kMethodNotFound, "efim/nonsense", None)
        self.editor_.notify("nonsense/notification", {"x": 1})
        self.editor_.notify("$/nonsense", None)

    def test_what_is_no_json(self):
        for body in (b"{", b"", b"\xff\xfe", b"[" * 100000, b'{"jsonrpc":"2.0"'):
            self.editor_.send_bytes(framed(body))
            self.assertEqual(self.editor_.answer(None)["error"]["code"], kParseError)

    def test_wrong_params(self):
        for params in ({}, {"textDocument": 3}, {"textDocument": {"uri": 5}, "position": {}},
                       {"textDocument": {"uri": kUri}, "position": {"line": -1, "character": 0}},
                       {"textDocument": {"uri": kUri}, "position": {"line": 1e300, "character": 0}},
                       {"textDocument": {"uri": kUri}, "position": {"line": "0", "character": 0}}):
            self.assert_error(kInvalidParams, "textDocument/inlineCompletion", params)
        self.editor_.notify("textDocument/didOpen", {"textDocument": []})
        # What such a change said is unknown: the document is told to be lost, and served when it is opened again.
        self.editor_.notify("textDocument/didChange", {"textDocument": {"uri": kUri, "version": 2}})
        self.assertEqual(self.editor_.complete(kUri, *kCursor)[0], [])
        self.assertIn("a change was not understood", json.dumps(self.editor_.heard))
        self.editor_.open(kUri, kText)

    def test_invalid_utf_8_in_a_document(self):
        body = json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
            "textDocument": {"uri": "file:///bad.py", "languageId": "python", "version": 1,
                             "text": "x = '@'\ny = \n"}}}).encode()
        self.editor_.send_bytes(framed(body.replace(b"@", b"\xff\xc3(\xed\xa0\x80")))
        self.editor_.complete("file:///bad.py", 1, 4)

    def test_half_a_surrogate_pair_in_a_change(self):
        self.editor_.send_bytes(framed(
            b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"%b",'
            b'"version":2},"contentChanges":[{"range":{"start":{"line":0,"character":0},"end":'
            b'{"line":0,"character":0}},"text":"# \\ud83d\\n"}]}}' % kUri.encode()))
        self.editor_.complete(kUri, kCursor[0] + 1, kCursor[1])

    def test_positions_outside_the_document(self):
        for line, character in ((0, 10**6), (10**6, 0), (2**31 - 1, 2**31 - 1)):
            self.editor_.complete(kUri, line, character)
        self.editor_.change(kUri, 2, ((10**6, 5), (10**7, 9), "# the end\n"))
        self.editor_.change(kUri, 3, ((4, 9), (4, 0), ""))
        self.editor_.complete(kUri, 4, 0)

    def test_changes_and_questions_to_an_unopened_document(self):
        self.editor_.change("file:///other.py", 2, ((0, 0), (0, 0), "x"))
        self.editor_.notify("textDocument/didClose", {"textDocument": {"uri": "file:///other.py"}})
        items, receipt = self.editor_.complete("file:///other.py", 0, 0)
        self.assertEqual(items, [])
        self.assertIn("not open", receipt["reason"])

    def test_a_document_of_50_mb(self):
        line = "value = compute(first, second)  # a line like many\n"
        text = line * (kLargeBytes // len(line))
        uri = "file:///large.py"
        self.editor_.open(uri, text)
        last = text.count("\n")
        self.editor_.change(uri, 2, ((last, 0), (last, 0), "value = comp"))
        _, receipt = self.editor_.complete(uri, last, 12)
        self.assertGreater(receipt["promptTokens"], 0)
        _, receipt = self.editor_.complete(uri, last // 2, 8)
        self.assertGreater(receipt["promptTokens"], 0)
        self.editor_.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def test_a_document_larger_than_the_limit(self):
        uri = "file:///too_large.py"
        self.editor_.open(uri, "x" * (65 * 2**20))
        items, receipt = self.editor_.complete(uri, 0, 0)
        self.assertEqual(items, [])
        self.assertIn("over the limit", receipt["reason"])
        self.editor_.change(uri, 2, ((0, 0), (0, 0), "y"))
        self.editor_.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        self.editor_.open(uri, "x" * (65 * 2**20))
        self.editor_.complete(uri, 0, 0)
        self.assert_shown("/too_large.py: document: ")

    def test_a_document_larger_than_a_message_may_be(self):
        uri = "file:///huge.log"
        self.editor_.open(uri, "x" * (200 * 2**20))
        self.editor_.change(uri, 2, ((0, 0), (0, 0), "y"))
        items, receipt = self.editor_.complete(uri, 0, 0)
        self.assertEqual((items, "not open" in receipt["reason"]), ([], True))
        self.assert_shown("a file of about 200 MiB")

    def assert_shown(self, part):
        """The user was shown one message, which holds `part`."""
        shown = [message["params"]["message"] for message in self.editor_.heard
                 if message["method"].startswith("window/showMessage")]
        self.assertEqual(len(shown), 1, shown)
        self.assertIn(part, shown[0])

    def test_a_text_larger_than_the_window(self):
        window = self.status()["model"]["windowTokens"]
        uri = "file:///long.py"
        self.editor_.open(uri, "".join(f"name_{i} = call_{i}(value, {i})\n" for i in range(4 * window)))
        for line in (4 * window, 2 * window, 0):
            _, receipt = self.editor_.complete(uri, line, 4)
            self.assertGreater(receipt["promptTokens"], 0)
            self.assertLess(receipt["promptTokens"], window)

    def test_one_line_larger_than_the_window(self):
        uri = "file:///minified.js"
        self.editor_.open(uri, "a+" * 100000)
        _, receipt = self.editor_.complete(uri, 0, 100000)
        self.assertLess(receipt["promptTokens"], self.status()["model"]["windowTokens"])


if __name__ == "__main__":
    unittest.main()
