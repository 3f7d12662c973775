"""No message of one editor holds another editor up: the longest that another one waits while the daemon works at it."""

import json
import time
import unittest

from lsp_peer import framed
from user import UserTest, kDelayMs

kMiB = 2**20


def notification(method, params):
    return framed(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}, ensure_ascii=False).encode())


def opening(uri, text):
    return notification("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "cpp", "version": 1, "text": text}})


def changing(uri, changes):
    return notification("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes})


def edit_at(character, text):
    at = {"line": 0, "character": character}
    return {"range": {"start": at, "end": at}, "text": text}


class LivenessTest(UserTest):
    config = "[cache]\ngitignore = true\n"

    def setUp(self):
        super().setUp()
        self.ready_editor().ask("efim/version", None)
        self.pid = self.daemon_pid()

    def longest_wait(self, what, *messages):
        """While the daemon takes all of these, until it has answered a request after them."""
        peer = self.connection()
        peer.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        begun = time.monotonic()
        with self.asking_meanwhile() as waited:
            for message in messages:
                peer.send_bytes(message)
            peer.ask("efim/version", None)
        print(f"{what}: {time.monotonic() - begun:.2f} s; another client waited at most {waited[0]:.1f} ms")
        self.assert_alive(self.pid)
        peer.connection.close()
        return waited[0]

    def check(self, what, *messages):
        self.assertLess(self.longest_wait(what, *messages), kDelayMs, what)

    def test_a_uri_of_16_000_parts(self):
        self.check("a URI of 16,000 parts", opening("file:///" + "a/" * 16000 + "x.cpp", "int a;\n"))

    def test_edits_in_a_long_line_that_is_not_ascii(self):
        uri = "file:///project/long.cpp"
        text = "é" * (2 * kMiB)
        self.check("50 edits in a line of 4 MiB that is not ASCII", opening(uri, text),
                   changing(uri, [edit_at(2 * kMiB - i, "ü") for i in range(50)]))
        self.check("2,000 edits in it", opening(uri, text),
                   changing(uri, [edit_at(kMiB - i, "ü") for i in range(2000)]))
        self.check("500 messages with an edit in it", opening(uri, text), *[changing(uri, [edit_at(kMiB - i, "ü")]) for i in range(500)])

    def test_thousands_of_edits_in_a_large_text(self):
        uri = "file:///project/large.cpp"
        at = [{"line": line, "character": 3} for line in range(0, 200000, 20)]
        self.check("10,000 edits in a text of 4 MiB", opening(uri, "int some = 12345678;\n" * 200000),
                   changing(uri, [{"range": {"start": each, "end": each}, "text": "x"} for each in reversed(at)]))

    def test_the_largest_texts(self):
        uri = "file:///project/largest.cpp"
        for name, line in (("ASCII", "int some = 12345678;\n"), ("other text", "// é ü 漢字 и так далее\n")):
            text = line * (63 * kMiB // len(line.encode()))
            self.check(f"an opened text of 63 MiB, {name}", opening(uri, text))
            self.check(f"a text of 63 MiB replaced by another, {name}", opening(uri, text), changing(uri, [{"text": text}]))

    def test_letters_in_the_largest_text(self):
        uri = "file:///project/largest.cpp"
        text = "int some = 12345678;\n" * (63 * kMiB // 21)
        self.check("ten letters in a text of 63 MiB", opening(uri, text), *[changing(uri, [edit_at(5, "x")]) for _ in range(10)])

    def test_a_message_of_small_objects(self):
        self.check("a message of 16 MiB of small objects", notification("efim/didShow", {"items": [{"a": []}] * (16 * kMiB // 12)}))

    def test_a_hostile_gitignore(self):
        project = self.folder / "project"
        folder = project.joinpath(*"abcdefgh")
        folder.mkdir(parents=True)
        (project / ".git").mkdir()
        line = "*a" * 120 + "b\n"
        (project / ".gitignore").write_text(line * (kMiB // len(line)))
        file = folder / ("a" * 200)
        self.check("a hostile .gitignore of 1 MiB", opening(file.as_uri(), "int a;\n"))

    def test_a_key_file_of_headers(self):
        self.check("a text of 63 MiB of key headers", opening("file:///project/keys.txt", "-----BEGIN " * (63 * kMiB // 11)))


if __name__ == "__main__":
    unittest.main()
