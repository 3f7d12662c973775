#!/usr/bin/env python3
"""Stands between an editor and its language server and writes down what they say.

    lsp_recorder.py FILE COMMAND [ARGUMENT...]      (as the editor's server)

FILE gets one line of JSON for each message: {"session": this process, "from": "editor" | "server", "message": ...}. Recording reads it again and answers what
tests ask: whether each request had its answer, and what the text would be if an item were taken.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading


def offset_of(text, position):
    """The offset of an LSP position in text of ASCII, where all encodings agree."""
    lines = text.split("\n")
    line = min(position["line"], len(lines) - 1)
    return sum(len(each) + 1 for each in lines[:line]) + min(position["character"], len(lines[line]))


def replaced(text, edit_range, new):
    return text[:offset_of(text, edit_range["start"])] + new + text[offset_of(text, edit_range["end"]):]


class Recording:
    """What was said so far, nothing where nobody has spoken. `requests`: id -> (uri, text, position) of each inline completion;
    `kinds`: what triggered each (LSP's InlineCompletionTriggerKind); `answers`: id -> message."""

    def __init__(self, file):
        self.texts, self.requests, self.kinds, self.answers = {}, {}, [], {}
        self.notified, self.from_server = [], []
        said = file.read_text(encoding="utf-8") if file.exists() else ""
        for line in said.split("\n")[:-1]:  # after the last line's end there is the beginning of a message, or nothing
            entry = json.loads(line)
            (self._editor if entry["from"] == "editor" else self._server)(entry["message"])

    def _editor(self, message):
        method, params = message.get("method"), message.get("params") or {}
        if method == "textDocument/didOpen":
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            uri = params["textDocument"]["uri"]
            for change in params["contentChanges"]:
                whole = "range" not in change
                self.texts[uri] = change["text"] if whole else \
                    replaced(self.texts[uri], change["range"], change["text"])
        elif method == "textDocument/inlineCompletion":
            uri = params["textDocument"]["uri"]
            self.requests[message["id"]] = (uri, self.texts[uri], params["position"])
            self.kinds.append(params["context"]["triggerKind"])
        if method and "id" not in message:
            self.notified.append((method, params))

    def _server(self, message):
        if "method" in message:
            self.from_server.append((message["method"], message.get("params")))
        elif "id" in message:
            self.answers.setdefault(message["id"], []).append(message)

    def unanswered(self):
        """Ids of inline completion requests that have not exactly one answer."""
        return [each for each in self.requests if len(self.answers.get(each, [])) != 1]

    def items(self):
        """(text, item) of every item that was answered, with the text that it was made for."""
        for request, (_, text, _) in self.requests.items():
            for answer in self.answers.get(request, []):
                for item in (answer.get("result") or {}).get("items", []):
                    yield text, item

    def outcomes(self):
        """The texts that there would be if an item were taken where it was offered."""
        return {replaced(text, item["range"], item["insertText"]) for text, item in self.items()}

    def shows(self, method):
        return [params for sent, params in self.notified if sent == method]

    def said(self, method):
        """The params of each such notification of the server's."""
        return [params for sent, params in self.from_server if sent == method]


def tidy(text):
    return "\n".join(line.rstrip() for line in text.split("\n"))


def is_offered(outcomes, text, cursor, ghost):
    """Whether `ghost` at `cursor` is what is left of an item: with it, the text is one that an item leads to.

    The item may replace what stands after the cursor in its line, and a drawing may repeat that; blanks at the ends of lines are
    the drawing's.
    """
    line_end = (text + "\n").index("\n", cursor)
    shown = {tidy(text[:cursor] + ghost + text[behind:]) for behind in range(cursor, line_end + 1)}
    return not shown.isdisjoint(map(tidy, outcomes))


def recorded_program(efimd, file):
    """A program that is `efimd`, but that `lsp` is recorded in `file`; it lies beside that file."""
    program = file.with_name("efimd-recorded")
    program.write_text(f"""#!/bin/sh
if [ "$1" = lsp ]; then exec '{sys.executable}' '{pathlib.Path(__file__).resolve()}' '{file}' '{efimd}' "$@"; fi
exec '{efimd}' "$@"
""", encoding="utf-8")
    program.chmod(0o755)
    return program


def frames(stream):
    """(raw bytes, body) of each message."""
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            if not byte:
                return
            head += byte
        size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length"))
        body = stream.read(size)
        yield head + body, body


def relay(source, sink, origin, log, lock):
    for raw, body in frames(source):
        with lock:
            log.write(json.dumps({"session": os.getpid(), "from": origin, "message": json.loads(body)}) + "\n")
            log.flush()
        sink.write(raw)
        sink.flush()
    sink.close()


def main():
    file, *command = sys.argv[1:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    with open(file, "a", encoding="utf-8") as log:
        threading.Thread(target=relay, args=(sys.stdin.buffer, server.stdin, "editor", log, lock), daemon=True).start()
        relay(server.stdout, sys.stdout.buffer, "server", log, lock)
    os._exit(server.wait())  # the other thread is reading stdin still, which Python would wait for


if __name__ == "__main__":
    main()
