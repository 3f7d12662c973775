"""One end of an LSP conversation, whole or broken: over a child process's pipes or over a socket.

Unlike tests/support/lsp_client.py it leaves every step to its test: bytes that are no LSP, many requests at once, answers with
errors, and a server that dies in between.
"""

import json
import socket
import subprocess
import threading
import time

kPatienceS = 180  # what a busy machine may take; a good run needs milliseconds


class LspError(Exception):
    """The answer is an error; `code` is its number."""

    def __init__(self, method, error):
        super().__init__(f"{method}: {error['message']} ({error['code']})")
        self.code, self.message = error["code"], error["message"]


class Ended(Exception):
    """The other end has closed the conversation."""


def framed(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class LspPeer:
    """One thread reads; every call is for the test's thread.

    heard   every notification and request of the server, as it came
    """

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.last_id, self.answers, self.heard = 0, {}, []
        self.changed, self.ended = threading.Condition(), False
        threading.Thread(target=self._read, daemon=True).start()

    @classmethod
    def connect(cls, path):
        """To the daemon's own socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        peer = cls(connection.makefile("rb"), connection.makefile("wb"))
        peer.connection = connection
        return peer

    def send_bytes(self, data):
        self.writer.write(data)
        self.writer.flush()

    def notify(self, method, params):
        self.send_bytes(framed({"jsonrpc": "2.0", "method": method, "params": params}))

    def start(self, method, params):
        """Sends a request; its id, for answer()."""
        self.last_id += 1
        self.send_bytes(framed({"jsonrpc": "2.0", "id": self.last_id, "method": method,
                                "params": params}))
        return self.last_id

    def answer(self, request, what="a request", seconds=kPatienceS):
        """The whole answer to the request with this id (None: an answer to what had no readable id)."""
        self._wait(lambda: request in self.answers, f"an answer to {what}", seconds)
        return self.answers.pop(request)

    def ask(self, method, params, seconds=kPatienceS):
        """The result of a request; an error raises LspError."""
        message = self.answer(self.start(method, params), method, seconds)
        if "error" in message:
            raise LspError(method, message["error"])
        return message["result"]

    def wait_for_notification(self, method, fits=lambda params: True, seconds=kPatienceS):
        found = []

        def look():
            found.extend(m["params"] for m in self.heard
                         if m.get("method") == method and fits(m.get("params")))
            return found

        self._wait(look, method, seconds)
        return found[0]

    def keep_heard(self, *methods):
        """Forgets what else was heard: a day's receipts are some 60 GB."""
        with self.changed:
            self.heard[:] = [message for message in self.heard if message["method"] in methods]

    def wait_for_end(self, seconds=kPatienceS):
        with self.changed:
            if not self.changed.wait_for(lambda: self.ended, seconds):
                raise TimeoutError("the other end is still open")

    def _wait(self, condition, what, seconds):
        with self.changed:
            if not self.changed.wait_for(lambda: condition() or self.ended, seconds):
                raise TimeoutError(f"no {what} in {seconds} s")
            if not condition():
                raise Ended(f"the server ended before {what}")

    def _read(self):
        try:
            while (message := self._receive()) is not None:
                with self.changed:
                    if "method" in message:
                        self.heard.append(message)
                    else:
                        self.answers[message["id"]] = message
                    self.changed.notify_all()
                if "method" in message and "id" in message:
                    self.send_bytes(framed({"jsonrpc": "2.0", "id": message["id"], "result": None}))
        except (OSError, ValueError):
            pass  # the end, as after a clean one
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _receive(self):
        size = None
        while line := self.reader.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        return None if size is None else json.loads(self.reader.read(size))


class Editor(LspPeer):
    """An editor with `efimd lsp` as its server."""

    def __init__(self, command, environment):
        self.child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        super().__init__(self.child.stdout, self.child.stdin)

    def initialize(self, seconds=kPatienceS, **efim):
        options = {"receipts": True, "maxTokens": 12, "stop": "none", "temperature": 0} | efim
        result = self.ask("initialize", {
            "processId": None, "rootUri": None, "initializationOptions": {"efim": options},
            "capabilities": {"general": {"positionEncodings": ["utf-16"]},
                             "textDocument": {"inlineCompletion": {}}}}, seconds)
        self.notify("initialized", {})
        return result

    def open(self, uri, text):
        self.notify("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "python", "version": 1, "text": text}})

    def change(self, uri, version, *changes):
        """Each change is (start, end, text) with (line, character) ends."""
        self.notify("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"range": {"start": dict(zip(("line", "character"), start)),
                                          "end": dict(zip(("line", "character"), end))},
                                "text": text} for start, end, text in changes]})

    def start_completion(self, uri, line, character, by_hand=True):
        return self.start("textDocument/inlineCompletion", {
            "textDocument": {"uri": uri}, "position": {"line": line, "character": character},
            "context": {"triggerKind": 1 if by_hand else 2}})

    def complete(self, uri, line, character, seconds=kPatienceS, by_hand=True):
        """(items, receipt) of one inline completion; recall answers what is not asked by hand."""
        request = self.start_completion(uri, line, character, by_hand)
        answer = self.answer(request, "textDocument/inlineCompletion", seconds)
        if "error" in answer:
            raise LspError("textDocument/inlineCompletion", answer["error"])
        receipt = self.wait_for_notification("efim/receipt",
                                             lambda params: params["request"] == request, seconds)
        return answer["result"]["items"], receipt

    def complete_when_loaded(self, uri, line, character, seconds=kPatienceS):
        """The first completion that a loaded model answers; while it loads, answers are empty at once."""
        deadline = time.monotonic() + seconds
        # A bridge without a daemon answers null, and looks for one when it is asked for a completion.
        while not (status := self.ask("efim/status", None)) or status["state"]["name"] == "loading":
            if not status:
                self.complete(uri, line, character, seconds)
            if time.monotonic() > deadline:
                raise TimeoutError("the model is still loading")
        return self.complete(uri, line, character, seconds)

    def leave(self):
        """Shuts the session down as an editor does; the exit status of its server."""
        self.ask("shutdown", None)
        self.notify("exit", None)
        return self.child.wait(kPatienceS)

    def close(self):
        """For the end of a test: whatever state it is in."""
        self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            try:
                pipe.close()
            except OSError:
                pass
