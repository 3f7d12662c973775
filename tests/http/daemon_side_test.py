#!/usr/bin/env python3
"""What efimd-http says to the daemon, heard by a stand-in for it: sharing, streams, cancelling, and a daemon that is gone."""

import json
import os
import queue
import socket
import threading
import unittest

from http_user import HttpTest, kPatienceS


def next_event(answer):
    """The next object of a stream of events or of lines."""
    while not (line := answer.readline().removeprefix(b"data: ").strip()):
        pass
    return json.loads(line)


class StandIn:
    """A daemon that answers initialize and nothing else by itself."""

    def __init__(self, path):
        self.heard = queue.Queue()
        self.open_elsewhere = None  # the answer to efim/findDocument
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
                elif message.get("method") == "efim/findDocument":
                    self.answer(message["id"], self.open_elsewhere)
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

    def begin(self, request, text):
        """Tells what the answer will begin with."""
        at = request["params"]["position"]
        self.send({"method": "$/progress", "params": {"token": request["params"]["partialResultToken"], "value": {
            "items": [{"insertText": text, "range": {"start": at, "end": at}}]}}})

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

    def send(self, before, after="\n", path="/infill", **more):
        """A connection that has asked for a completion and waits."""
        connection = self.connection()
        text = {"input_prefix": before, "input_suffix": after} if path == "/infill" else {"prompt": before, "suffix": after}
        connection.request("POST", path, json.dumps(text | more), {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        return connection

    def test_a_client_that_closes_is_cancelled_in_the_daemon(self):
        connection = self.send("int a")
        asked = self.daemon.next("textDocument/inlineCompletion")
        connection.close()
        self.assertEqual(self.daemon.next("$/cancelRequest")["params"], {"id": asked["id"]})

    def test_a_client_that_warms_up_its_server_starts_the_daemon(self):
        # As llama.vim sends it when a buffer is entered or saved, or text is yanked.
        connection = self.send("", "", input_extra=[{"text": "int a;"}], prompt="", n_predict=0, samplers=[])
        self.assertEqual(json.loads(connection.getresponse().read())["content"], "")
        self.daemon.next("efim/status")

    def test_a_request_without_text_has_the_model_loaded(self):
        connection = self.send("", "", path="/api/generate", stream=False)  # as Ollama's clients do that
        answer = json.loads(connection.getresponse().read())
        self.assertEqual((answer["response"], answer["done"], answer["done_reason"]), ("", True, "load"))
        self.daemon.next("efim/status")

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

    def test_a_text_that_an_editor_has_open_goes_on_in_a_copy_of_its_document(self):
        lines = [f"int value_{line};\n" for line in range(40)]
        self.daemon.open_elsewhere = {"uri": "file:///home/u/a.cpp", "languageId": "cpp", "text": "".join(lines)}
        first = self.send("".join(lines[10:20]) + "int x", "\n" + "".join(lines[20:25]))
        opened = self.daemon.next("textDocument/didOpen")["params"]["textDocument"]
        self.assertEqual((opened["uri"], opened["languageId"], opened["text"]), ("file:///home/u/a.cpp", "cpp", "".join(lines)))
        changed = self.daemon.next("textDocument/didChange")["params"]["contentChanges"]
        self.assertEqual([change["text"] for change in changed], ["int x\n"])
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.assertEqual(asked["params"]["position"], {"line": 20, "character": 5})
        self.daemon.complete(asked, "y;")
        self.assertEqual(json.loads(first.getresponse().read())["content"], "y;")
        self.daemon.open_elsewhere = {"uri": "file:///home/u/b.cpp", "languageId": "cpp", "text": "another text\n"}
        self.send("nothing of it\n" * 9)
        self.assertEqual(self.daemon.next("textDocument/didOpen")["params"]["textDocument"]["uri"][:12], "efimd-http:/")

    def test_an_answer_that_covers_a_closed_bracket_is_made_one_to_insert(self):
        connection = self.send("f(", ")\n")
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.answer(asked["id"], {"items": [{"insertText": "a, b) + 1", "range": {
            "start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 3}}}]})
        self.daemon.send({"method": "efim/receipt", "params": {"request": asked["id"]}})
        self.assertEqual(json.loads(connection.getresponse().read())["content"], "a, b")

    def test_a_stream_brings_what_the_model_has_written_while_it_goes_on(self):
        pieces = {"/infill": lambda event: event["content"], "/completion": lambda event: event["content"],
                  "/v1/completions": lambda event: event["choices"][0]["text"],
                  "/v1/fim/completions": lambda event: event["choices"][0]["delta"]["content"], "/api/generate": lambda event: event["response"]}
        for path, text_of in pieces.items():
            with self.subTest(path):
                stops = {"stop": ["END"]}
                connection = self.send(f"int {path[1:4]} = ", path=path, stream=True, **({"options": stops} if path == "/api/generate" else stops))
                asked = self.daemon.next("textDocument/inlineCompletion")
                self.daemon.begin(asked, "1;")
                answer = connection.getresponse()  # before the daemon has answered
                self.assertEqual(text_of(next_event(answer)), "1;")
                self.daemon.begin(asked, "1;\ntwo();E")  # "E" may become a stop
                self.assertEqual(text_of(next_event(answer)), "\ntwo();")
                self.daemon.complete(asked, "1;\ntwo();E3;ENDless")
                self.assertEqual(text_of(next_event(answer)), "E3;")
                self.assertEqual(text_of(next_event(answer)), "")
                self.assertEqual(answer.read().strip(), b"" if path in ("/infill", "/completion", "/api/generate") else b"data: [DONE]")
                connection.request("GET", "/health", headers={"Authorization": f"Bearer {self.token}"})  # it is kept open
                self.daemon.answer(self.daemon.next("efim/status")["id"], {})
                connection.getresponse().read()

    def test_a_stream_whose_client_closes_is_cancelled_in_the_daemon(self):
        connection = self.send("int a", stream=True)
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.begin(asked, " = 1;")
        answer = connection.getresponse()
        next_event(answer)
        answer.close()
        connection.close()
        self.assertEqual(self.daemon.next("$/cancelRequest")["params"], {"id": asked["id"]})

    def test_a_stream_whose_answer_fails_ends_with_an_error(self):
        connection = self.send("int a", stream=True)
        asked = self.daemon.next("textDocument/inlineCompletion")
        self.daemon.begin(asked, " = 1;")
        answer = connection.getresponse()
        next_event(answer)
        self.daemon.answer(asked["id"], {"items": []})
        self.daemon.send({"method": "efim/receipt", "params": {"request": asked["id"], "reason": "no model: no such file"}})
        self.assertIn("no such file", next_event(answer)["error"]["message"])
        self.assertEqual(answer.read().strip(), b"")

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
