#!/usr/bin/env python3
"""A keystroke by HTTP costs what it costs by LSP, also in a file that an editor has open: receipts of code that is typed as llama.vim sends it."""

import json
import pathlib
import statistics
import unittest

from http_user import HttpTest, kRoot

kPrefixLines, kSuffixLines = 256, 64  # what llama.vim sends of a file
kSource = (kRoot / "daemon" / "server" / "session.cpp").read_text()
kTyped = 240  # characters
kKeyTokens = 32  # more than a key, its healed word and a draft take


def window(before, after):
    """The lines around the cursor, as llama.vim cuts them."""
    head = before.split("\n")
    tail = after.split("\n")
    return "\n".join(head[max(0, len(head) - 1 - kPrefixLines):]), "\n".join(tail[: 1 + kSuffixLines]) + "\n"


class Typing(HttpTest):
    def type(self, speculate):
        """Receipts of each keystroke: a method's body, typed anew after its head."""
        start = kSource.index("host_.log().info(\"session {}: {}, {}\"")
        whole_before, after = kSource[:start], kSource[start + kTyped:]
        receipts = []
        for count in range(kTyped + 1):
            before = whole_before + kSource[start: start + count]
            answer = self.infill(*window(before, after), response_fields=["content", "efim"])
            if answer["efim"]:
                receipts.append(answer["efim"])
            if speculate and answer["content"]:
                self.infill(*window(before + answer["content"], after), response_fields=["content"])
        return receipts

    def check(self, receipts):
        typed = receipts[1:]  # the first one reads the file
        evaluated = [receipt["evaluatedTokens"] for receipt in typed]
        # A fuller view of the file is evaluated beside as soon as little of it is missing: the busier the machine, the more stages.
        views = [tokens for tokens in evaluated if tokens > kKeyTokens]
        keys = [tokens for tokens in evaluated if tokens <= kKeyTokens]
        print(f"\n{len(typed)} keystrokes: mean {statistics.mean(keys):.2f} evaluated tokens, and for fuller views {views}; "
              f"first: {receipts[0]['evaluatedTokens']}")
        self.assertEqual(len(typed), kTyped)
        self.assertLessEqual(statistics.median(evaluated), 1)
        self.assertLessEqual(statistics.mean(keys), 2)
        self.assertLessEqual(len(views), 6)  # of so many stages
        self.assertLess(max(evaluated), 400)  # what a request evaluates that found nothing
        self.assertEqual(len({receipt["uri"] for receipt in receipts}), 1)

    def test_each_character_is_a_request(self):
        self.check(self.type(speculate=False))

    def test_after_each_suggestion_the_client_asks_for_the_one_after_it(self):
        self.check(self.type(speculate=True))

    def test_the_cursor_goes_down_a_file_that_is_larger_than_the_window(self):
        lines = (kSource + kSource).split("\n")
        evaluated = []
        for line in range(280, 330):
            before = "\n".join(lines[:line]) + "\n" + lines[line]
            answer = self.infill(*window(before, "\n" + "\n".join(lines[line + 1:])), response_fields=["efim"])
            evaluated.append(answer["efim"])
        self.assertEqual(len({receipt["uri"] for receipt in evaluated}), 1)


class OpenInAnEditor(HttpTest):
    options = "[completion]\nrecall = false\n[window]\ntokens = 256"  # so small that every prompt shows all of it

    def test_a_key_by_http_in_a_file_that_an_editor_has_open_uses_what_the_editors_prompts_left(self):
        folder = self.folder / "project"
        folder.mkdir()
        file = folder / "session.cpp"
        file.write_text(kSource)
        start = kSource.index("host_.log().info(\"session {}: {}, {}\"")
        text = kSource[:start] + kSource[start + kTyped:]
        editor = self.editor()
        editor.initialize(stop="block", maxTokens=128)  # as llama.vim: the window depends on it
        editor.open(file.as_uri(), text)
        before, after = text[:start], text[start:]
        editor.complete_when_loaded(file.as_uri(), before.count("\n"), start - before.rindex("\n") - 1)
        answer = self.infill(*window(before + kSource[start], after), response_fields=["efim"])
        print(f"\nfirst key by HTTP: {answer['efim']['evaluatedTokens']} of {answer['efim']['promptTokens']} evaluated")
        self.assertEqual(answer["efim"]["uri"], file.as_uri())
        self.assertGreater(answer["efim"]["reusedTokens"], 0)
        again = self.infill(*window(before + kSource[start: start + 2], after), response_fields=["efim"])["efim"]
        self.assertLessEqual(again["evaluatedTokens"], 4)


if __name__ == "__main__":
    unittest.main()
