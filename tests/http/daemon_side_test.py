#!/usr/bin/env python3
"""What efimd-http says to the daemon, heard by a stand-in for it: sharing, cancelling, and a daemon that is gone."""

import json
import os
import queue
import socket
import threading
import unittest

from http_user import HttpTest, kPatienceS


class StandIn:
    """A daemon that answers initialize and nothing else by itself."""

    def __init__(self, path):
        self.heard = queue.Queue()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        os.chmod(path, 0o600)
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                self.peer, _ = self.listener.accept()
            except OSError:
                return
            reader = self.peer.makefile("rb")
            while (message := self._read(reader)) is not None:
                if message.get("method") == "initialize":
                    self.answer(message["id"], {"capabilities": {"positionEncoding": "utf-8"}})
                else:
                    self.heard.put(message)

    @staticmethod
    def _read(reader):
        size = 0
        while line := reader.readline().strip():
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        return json.loads(reader.read(size)) if size else None

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.peer.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def answer(self, request, result):
        self.send({"id": request, "result": result})

    def complete(self, request, text):
        """Inserts `text` at the cursor; then the receipt, as the daemon does."""
        at = request["params"]["position"]
        self.answer(request["id"], {"items": [{"insertText": text, "range": {"start": at, "end": at}}]})
        self.send({"method": "efim/receipt", "params": {"request": request["id"], "generatedTokens": 1}})

    def next(self, method):
        """The next message of this method."""
        while (message := self.heard.get(timeout=kPatienceS)).get("method") != method:
            pass
        return message

    def close(self):
        self.listener.close()
        self.peer.close()


class DaemonSide(HttpTest):
    def setUp(self):
        super().setUp()
        self.daemon = StandIn(self.runtime / "daemon.sock")
        self.addCleanup((self.runtime / "daemon.sock").unlink, missing_ok=True)
        self.addCleanup(self.daemon.close)

    def send(self, before, after="\n"):
        """A connection that has asked for a completion and waits."""
        connection = self.connection()
        connection.request("POST", "/infill", json.dumps({"input_prefix": before, "input_suffix": after}), {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        return connection

    def test_a_client_that_closes_is_cancelled_in_the_daemon(self):
        connection = self.send("int a")
        asked = self.daemon.next("textDocument/inlineCompletion")
        connection.close()
        self.assertEqual(self.daemon.next("$/cancelRequest")["params"], {"id": asked["id"]})

    def test_the_same_request_twice_is_asked_once_and_cancelled_when_both_have_left(self):
        first, second = self.send("int a"), self.send("int a")
        asked = self.daemon.next("textDocument/inlineCompletion")
        third = self.send("int b")  # behind the second, if the server takes them in turn
        other = self.daemon.next("textDocument/inlineCompletion")
        self.assertEqual(self.daemon.heard.qsize(), 0)
        self.daemon.complete(asked, " = 1;")
        for connection in (first, second):
            self.assertEqual(json.loads(connection.getresponse().read())["content"], " = 1;")
        third.close()
        self.assertEqual(self.daemon.next("$/cancelRequest")["params"], {"id": other["id"]})

    def test_text_is_synchronized_by_small_changes(self):
        first = self.send("int a")
        opened = self.daemon.next("textDocument/didOpen")["params"]["textDocument"]
        self.assertEqual(opened["text"], "int a\n")
        self.daemon.complete(self.daemon.next("textDocument/inlineCompletion"), "x")
        first.getresponse().read()
        self.send("int ab")
        changed = self.daemon.next("textDocument/didChange")["params"]
        self.assertEqual(changed["textDocument"]["uri"], opened["uri"])
        self.assertEqual(changed["contentChanges"], [
            {"range": {"start": {"line": 0, "character": 5}, "end": {"line": 0, "character": 5}}, "text": "b"}])

    def test_an_answer_that_covers_a_closed_bracket_is_made_one_to_insert(self):
        connection = self.send("f(", ")\n")
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.answer(asked["id"], {"items": [{"insertText": "a, b) + 1", "range": {
            "start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 3}}}]})
        self.daemon.send({"method": "efim/receipt", "params": {"request": asked["id"]}})
        self.assertEqual(json.loads(connection.getresponse().read())["content"], "a, b")

    def test_a_model_that_loads_is_unavailable_as_llama_server_says_it(self):
        connection = self.send("int a")
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.answer(asked["id"], {"items": []})
        self.daemon.send({"method": "efim/receipt", "params": {
            "request": asked["id"], "reason": "the model is still loading (3 %)"}})
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())["error"]["message"]), (503, "Loading model"))

    def test_a_model_that_cannot_be_had_is_said(self):
        connection = self.send("int a")
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.answer(asked["id"], {"items": []})
        self.daemon.send({"method": "efim/receipt", "params": {"request": asked["id"], "reason": "no model: no such file"}})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 503)
        self.assertIn("no such file", json.loads(answer.read())["error"]["message"])


if __name__ == "__main__":
    unittest.main()
