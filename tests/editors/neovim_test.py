#!/usr/bin/env python3
"""The README's lines of Neovim configuration, in a real Neovim: ghost text is seen, follows typing and is accepted.

    neovim_test.py EFIMD NEOVIM_DIRECTORY

Exit status 77 (skipped) when this machine cannot have a Neovim 0.12, with the reason as the last line.
"""

import pathlib
import re
import subprocess
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from neovim import Neovim  # noqa: E402
from private_daemon import kSmallModel, private_daemon  # noqa: E402

kSkipped = 77
def readme_configuration():
    """The Lua block of the README's Neovim section."""
    readme = (kRoot / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```lua\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, f"the README has {len(blocks)} Lua blocks, not one"
    return blocks[0]


class GhostText(unittest.TestCase):
    efimd = neovim_program = None

    def setUp(self):
        self.environment = self.enterContext(private_daemon(self.efimd, "[completion]\nconfidence = 0\n", kSmallModel))
        # A real file, with the body of one of its functions still to be written.
        source = (kRoot / "base" / "utf8.cpp").read_text(encoding="utf-8")
        body = source.index("  std::string out;\n")
        source = source[:body] + source[source.index("}\n", source.index("return out;")):]
        file = pathlib.Path(self.environment["HOME"], "utf8.cpp")
        file.write_text(source, encoding="utf-8")
        self.neovim = Neovim(self.neovim_program, self.environment, str(file), readme_configuration())
        self.addCleanup(self.neovim.close)
        self.neovim.wait_for_model(self.efimd)
        self.neovim.type(":set shiftwidth=2 expandtab<CR>")
        self.neovim.type(f"{source.count(chr(10), 0, body)}Gostd::string out;<CR>"
                         "out.reserve(text.size());<CR>while (!text.empty()) {<CR>")

    def assert_no_complaints(self):
        state = self.neovim.state()
        self.assertEqual((state["messages"].strip(), state["error"]), ("", ""))
        self.assertEqual(self.neovim.log_errors(), [])

    def test_the_key_of_the_readme_inserts_exactly_the_ghost_text(self):
        before = self.neovim.ghost_at_cursor()
        row, column, ghost = before["row"], before["column"], before["ghost"]
        self.neovim.type("<Tab>")
        after = self.neovim.wait_for("the accepted text",
                                     lambda state: state["lines"] != before["lines"])
        lines = before["lines"]
        grown = lines[row][:column] + ghost + lines[row][column:]
        self.assertEqual(after["lines"], lines[:row] + grown.split("\n") + lines[row + 1:])
        self.assert_no_complaints()

    def test_ghost_text_follows_what_is_typed(self):
        first = self.neovim.ghost_at_cursor()
        # On a new line, what was shown before cannot be at the cursor: this is a new answer.
        self.neovim.type("const std::size_t valid = valid_prefix(text);<CR>if (")
        second = self.neovim.ghost_at_cursor()
        self.assertEqual(second["row"], first["row"] + 1)
        self.assertTrue(second["lines"][second["row"]].endswith("if ("))
        self.assert_no_complaints()

    def test_the_key_is_an_ordinary_tab_where_nothing_is_suggested(self):
        self.neovim.type("<Esc>:lua vim.lsp.inline_completion.enable(false)<CR>o<Tab>x")
        state = self.neovim.wait_for("the typed text",
                                     lambda s: s["lines"][s["row"]].strip() == "x")
        self.assertRegex(state["lines"][state["row"]], r"^[ \t]+x$")
        self.assert_no_complaints()


def main():
    efimd, directory = sys.argv[1:]
    installer = pathlib.Path(__file__).with_name("install_neovim")
    found = subprocess.run([installer, directory], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
    if found.returncode == kSkipped:
        print(found.stderr, end="")
        return kSkipped
    if found.returncode != 0:
        raise SystemExit(f"install_neovim failed: {found.stderr}")
    GhostText.efimd, GhostText.neovim_program = efimd, found.stdout.strip()
    return not unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
