#!/usr/bin/env python3
"""The README's lines of Neovim configuration, in a real Neovim: ghost text is seen, follows typing and is accepted.

    neovim_test.py EFIMD NEOVIM_DIRECTORY

Exit status 77 (skipped) when this machine cannot have a Neovim 0.12, with the reason as the last line.
"""

import json
import pathlib
import re
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from private_daemon import private_daemon  # noqa: E402

kSkipped = 77
kPatienceS = 30  # what a busy machine may take; a good run needs milliseconds

kState = """(function()
  local space = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
  local ghosts = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
    local text = ''
    for _, chunk in ipairs(mark[4].virt_text or {}) do text = text .. chunk[1] end
    for _, line in ipairs(mark[4].virt_lines or {}) do
      text = text .. '\\n'
      for _, chunk in ipairs(line) do text = text .. chunk[1] end
    end
    table.insert(ghosts, { row = mark[2], column = mark[3], text = text })
  end
  local cursor = vim.api.nvim_win_get_cursor(0)
  return vim.json.encode({
    mode = vim.api.nvim_get_mode().mode,
    row = cursor[1] - 1, column = cursor[2],
    lines = vim.api.nvim_buf_get_lines(0, 0, -1, true),
    ghosts = ghosts,
    clients = #vim.lsp.get_clients({ name = 'efimd', bufnr = 0 }),
    messages = vim.fn.execute('messages'), error = vim.v.errmsg,
  })
end)()"""


def readme_configuration():
    """The Lua block of the README's Neovim section."""
    readme = (kRoot / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```lua\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, f"the README has {len(blocks)} Lua blocks, not one"
    return blocks[0]


class Neovim:
    """A headless Neovim on a socket. Its home is the daemon's environment's."""

    def __init__(self, program, environment, file):
        home = pathlib.Path(environment["HOME"])
        configuration = home / ".config" / "nvim" / "init.lua"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(readme_configuration(), encoding="utf-8")
        self.program, self.environment, self.address = program, environment, str(home / "nvim.sock")
        self.child = subprocess.Popen([program, "--headless", "--listen", self.address, file],
                                      env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for("its socket", lambda: pathlib.Path(self.address).exists(), state=None)

    def remote(self, option, text):
        done = subprocess.run([self.program, "--server", self.address, option, text], check=True,
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=kPatienceS)
        return done.stdout + done.stderr  # --remote-expr prints to stderr in some versions

    def type(self, keys):
        self.remote("--remote-send", keys)

    def state(self):
        return json.loads(self.remote("--remote-expr", f"luaeval({json.dumps(kState)})"))

    def wait_for(self, what, holds, state=state):
        """Asks until `holds` does, and returns that state; what holds() cannot wait for is a failure."""
        deadline = time.monotonic() + kPatienceS
        while True:
            found = (state(self),) if state else ()
            if holds(*found):
                return found[0] if found else None
            if self.child.poll() is not None:
                raise AssertionError(f"Neovim ended while {what} was awaited")
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come in {kPatienceS} s; last seen: {found}")
            time.sleep(0.02)  # the pace of asking; it decides nothing

    def ghost_at_cursor(self):
        """The state once there is ghost text at the cursor; its text is state["ghost"]."""
        def seen(state):
            for ghost in state["ghosts"]:
                if (ghost["row"], ghost["column"]) == (state["row"], state["column"]) and ghost["text"]:
                    state["ghost"] = ghost["text"]
            return "ghost" in state
        return self.wait_for("ghost text at the cursor", seen)

    def close(self):
        self.type("<C-\\><C-n>:qa!<CR>")
        try:
            self.child.wait(kPatienceS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise


class GhostText(unittest.TestCase):
    efimd = neovim_program = None

    def setUp(self):
        self.environment = self.enterContext(private_daemon(self.efimd))
        # A real file, with the body of one of its functions still to be written.
        source = (kRoot / "base" / "utf8.cpp").read_text(encoding="utf-8")
        body = source.index("  std::string out;\n")
        source = source[:body] + source[source.index("}\n", source.index("return out;")):]
        file = pathlib.Path(self.environment["HOME"], "utf8.cpp")
        file.write_text(source, encoding="utf-8")
        self.neovim = Neovim(self.neovim_program, self.environment, str(file))
        self.addCleanup(self.neovim.close)
        self.neovim.wait_for("the language client", lambda state: state["clients"] == 1)
        # Neovim asks once after the last change, so a request that came while the model was loading would be the last.
        self.neovim.wait_for("the model", self.model_is_ready, state=None)
        self.neovim.type(":set shiftwidth=2 expandtab<CR>")
        self.neovim.type(f"{source.count(chr(10), 0, body)}Gostd::string out;<CR>"
                         "out.reserve(text.size());<CR>while (!text.empty()) {<CR>")

    def model_is_ready(self):
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["state"]["name"] == "ready"

    def assert_no_complaints(self):
        state = self.neovim.state()
        self.assertEqual((state["messages"].strip(), state["error"]), ("", ""))
        log = pathlib.Path(self.environment["HOME"], ".local/state/nvim/lsp.log")
        errors = [line for line in log.read_text().splitlines() if line.startswith("[ERROR]")] \
            if log.exists() else []
        self.assertEqual(errors, [])

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
