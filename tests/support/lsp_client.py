"""An editor as a language server sees it: one LSP peer on a child process, with documents and efimd's receipts."""

import json
import subprocess
import threading


def position_of(text, offset):
    """The LSP position (UTF-16) of a code point offset."""
    line_start = text.rfind("\n", 0, offset) + 1
    return {"line": text.count("\n", 0, offset),
            "character": len(text[line_start:offset].encode("utf-16-le")) // 2}


def offset_of(text, position):
    """The code point offset of an LSP position (UTF-16); past a line's end it is the line's end."""
    start = 0
    for _ in range(position["line"]):
        start = text.index("\n", start) + 1
    line = text[start:].split("\n", 1)[0].encode("utf-16-le")
    return start + len(line[: 2 * position["character"]].decode("utf-16-le"))


class LspError(Exception):
    """The server answered a request with an error, not in time, or not at all."""


class LspClient:
    """Starts `command` and initializes it. One thread reads; every other call is for one thread."""

    def __init__(self, command, environment, options):
        self.child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        self.last_id, self.answers, self.receipts = 0, {}, {}
        self.changed, self.ended = threading.Condition(), False
        threading.Thread(target=self._read, daemon=True).start()
        self.ask("initialize", {
            "processId": None, "rootUri": None, "initializationOptions": {"efim": options},
            "capabilities": {"general": {"positionEncodings": ["utf-16"]},
                             "textDocument": {"inlineCompletion": {}}}})
        self.notify("initialized", {})

    def notify(self, method, params):
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, params, seconds=60):
        """The result of a request."""
        self.last_id += 1
        self._send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        message = self._wait(self.answers, method, seconds)
        if "error" in message:
            raise LspError(f"{method}: {message['error']['message']}")
        return message["result"]

    def complete(self, uri, position, seconds=60):
        """(items, receipt) of one inline completion."""
        result = self.ask("textDocument/inlineCompletion", {
            "textDocument": {"uri": uri}, "position": position,
            "context": {"triggerKind": 2}}, seconds)
        return result["items"], self._wait(self.receipts, "efim/receipt", seconds)

    def close(self):
        """Shuts the server down as an editor does; one that does not end is killed."""
        try:
            self.ask("shutdown", None, seconds=10)
            self.notify("exit", None)
            self.child.wait(10)
        except (LspError, OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()

    def _wait(self, arrivals, what, seconds):
        with self.changed:
            if not self.changed.wait_for(lambda: self.last_id in arrivals or self.ended, seconds):
                raise LspError(f"no answer to {what} in {seconds} s")
            if self.last_id not in arrivals:
                raise LspError(f"the server ended before it answered {what}")
            return arrivals.pop(self.last_id)

    def _send(self, message):
        body = json.dumps(message).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.child.stdin.flush()

    def _read(self):
        while (message := self._receive()) is not None:
            with self.changed:
                if "method" in message and "id" in message:
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
                elif message.get("method") == "efim/receipt":
                    self.receipts[message["params"]["request"]] = message["params"]
                elif "id" in message:
                    self.answers[message["id"]] = message
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _receive(self):
        size = None
        while line := self.child.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        return None if size is None else json.loads(self.child.stdout.read(size))
