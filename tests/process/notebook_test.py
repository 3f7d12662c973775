"""Notebooks as a client of LSP 3.17 tells of them, with the real binary: what a keystroke in a cell costs, and what its file decides."""

import json
import unittest

from user import UserTest, poll

kAbove = "".join(f"def value_{number}(table):\n    return table[{number}] + {number}\n\n\n" for number in range(12))
kCells = [kAbove, "total = value_1(", "%matplotlib inline\nrows = []\nfor row in rows:\n    "]


class NotebookTest(UserTest):
    config = "[completion]\nmax_tokens = 4\nconfidence = 0\n"

    def opened(self, name):
        """An editor with a notebook of that name, and a text cell between its code cells."""
        self.notebook = self.folder / name
        self.cells = [f"vscode-notebook-cell:{self.notebook}#{number}" for number in range(len(kCells))]
        editor = self.editor()
        editor.initialize()
        texts = [{"uri": uri, "languageId": "python", "version": 1, "text": text} for uri, text in zip(self.cells, kCells)]
        note = {"uri": "vscode-notebook-cell:note", "languageId": "markdown", "version": 1, "text": "# what it does"}
        editor.notify("notebookDocument/didOpen", {
            "notebookDocument": {"uri": self.notebook.as_uri(), "notebookType": "jupyter-notebook", "version": 1, "cells": [
                {"kind": 2, "document": self.cells[0]}, {"kind": 1, "document": note["uri"]},
                *({"kind": 2, "document": uri} for uri in self.cells[1:])]},
            "cellTextDocuments": [*texts, note]})
        return editor

    def type(self, editor, cell, line, character, text):
        """The receipt after `text` was typed there."""
        place = {"line": line, "character": character}
        editor.notify("notebookDocument/didChange", {
            "notebookDocument": {"uri": self.notebook.as_uri(), "version": 2},
            "change": {"cells": {"textContent": [{"document": {"uri": self.cells[cell], "version": 2},
                                                  "changes": [{"range": {"start": place, "end": place}, "text": text}]}]}}})
        items, receipt = editor.complete(self.cells[cell], line, character + len(text))
        for item in items:
            self.assertEqual(item["range"]["start"]["line"], line)
        return receipt

    def test_a_keystroke_in_a_cell_costs_what_it_does_in_a_file(self):
        editor = self.opened("work.ipynb")
        end = len(kCells[1])
        receipts = [editor.complete_when_loaded(self.cells[1], 0, end)[1]]

        def is_whole():
            receipts.append(editor.complete(self.cells[1], 0, end)[1])
            return receipts[-1].get("window", {}).get("view") == "full"

        poll(is_whole, "the whole notebook in a prompt")
        self.assertEqual(receipts[-1]["window"]["shown"], 1)
        costs = [self.type(editor, 1, 0, end + at, text)["evaluatedTokens"] for at, text in enumerate("tabl")]
        self.assertLessEqual(max(costs), 8, costs)
        # The other cell is far from the end of what was evaluated for this one: its before is there, its after is empty.
        jump = self.type(editor, 2, 3, 4, "row")
        self.assertLess(jump["evaluatedTokens"], jump["promptTokens"] / 2, jump)
        # Kept and purged by the notebook's path.
        files = poll(lambda: [file for file in json.loads(self.run_efimd("cache", "list", "--json").stdout)["files"] if file["tokensDisk"]],
                     "KV on disk")
        self.assertEqual([file["uri"] for file in files], [self.notebook.as_uri() + "#.py"])
        self.assertEqual(self.status()["recall"]["documents"], 1)
        purged = self.run_efimd("cache", "purge", "--json", "--", self.notebook)
        self.assertGreater(json.loads(purged.stdout)["tokens"], 0, purged)
        poll(lambda: self.status()["recall"]["documents"] == 0, "recall without its text")

    def test_a_notebook_that_may_hold_secrets_gets_nothing(self):
        editor = self.opened("notes.env")
        _, receipt = editor.complete_when_loaded(self.cells[1], 0, 3)
        self.assertIn("may hold secrets", receipt["reason"])

    def test_a_notebook_that_the_user_excludes_is_not_stored(self):
        (self.folder / "config.toml").write_text(self.config + '[cache]\nexclude = ["*.ipynb"]\n')
        editor = self.opened("work.ipynb")
        _, receipt = editor.complete_when_loaded(self.cells[1], 0, 3)
        self.assertEqual(receipt["notStored"], "cache.exclude names it (*.ipynb)")


class NotebookOnDiskTest(UserTest):
    def test_recall_offers_the_code_of_the_projects_other_notebooks(self):
        project = self.folder / "project"
        (project / ".git").mkdir(parents=True)
        lines = ["# what was sold\n", "orders = fetch_orders(region='north', limit=250)\n", "orders.head()"]
        cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": lines,
            "outputs": [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBORw0KGgo" * 200_000}}]}
        (project / "sold.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        uri = (project / "main.py").as_uri()
        text = lines[0] + "orders = fetch_"
        editor = self.editor()
        editor.initialize()
        editor.open(uri, text)
        place = (1, len("orders = fetch_"))
        editor.complete_when_loaded(uri, *place)
        poll(lambda: self.status()["recall"]["files"] == 1, "the notebook is read")
        items, receipt = editor.complete(uri, *place, by_hand=False)
        self.assertIn("recalled", receipt["source"])
        self.assertEqual(items[0]["insertText"].splitlines()[0], "orders(region='north', limit=250)")


if __name__ == "__main__":
    unittest.main()
