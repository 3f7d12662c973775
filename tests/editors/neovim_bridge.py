"""The end of `efimd lsp` under a Neovim, and its next start, for neovim_plugin_test.py."""

import os
import pathlib
import signal

from neovim_plugin import Plugin
from private_daemon import processes_of

kRestartsMax = 3  # client.lua


class Bridge(Plugin):
    def show_another(self, name):
        self.neovim.type(f"<Esc>Go    def set_{name}(self, {name}")
        self.neovim.ghost_at_cursor()

    def bridges(self):
        """Pids of those that Neovim has started."""
        def is_one(pid):
            try:
                return b"lsp_recorder.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                return False
        return [pid for pid in processes_of(self.home) if is_one(pid)]

    def clients(self):
        return self.neovim.lua("vim.tbl_map(function(client) return client.id end, (vim.lsp.get_clients or vim.lsp.get_active_clients)())")

    def serving(self):
        return self.neovim.lua("(require('efimd.client').get() or {}).initialized == true")

    def test_after_a_restart_suggestions_come_from_the_new_bridge(self):
        self.start_ready()
        self.show_another("name")
        before, = self.clients()
        self.neovim.type("<Esc>:Efimd restart<CR>")
        # Its end comes after the next one's start.
        self.neovim.wait_for("the new one alone", state=None, holds=lambda: (now := self.clients()) and before not in now)
        self.show_another("value")
        self.neovim.type("<Esc>:new<CR>:quit<CR>")
        self.show_another("key")
        self.assertEqual(len(self.clients()), 1)
        self.assert_no_complaints()

    def test_what_is_typed_while_there_is_no_bridge_is_known_to_the_next(self):
        self.start_ready()
        self.show_another("name")
        self.neovim.type("<Esc>")
        self.neovim.lua("vim.lsp.stop_client(require('efimd.client').get().id)")
        self.neovim.wait_for("its end", state=None, holds=lambda: self.clients() == [])
        self.neovim.type("Go<Esc>0C# typed meanwhile<Esc>:Efimd restart<CR>")
        self.neovim.wait_for("the next one", state=None, holds=self.serving)
        self.neovim.type("o<Esc>0C    def set_value(self, value")
        before = self.neovim.ghost_at_cursor()
        uri, text, _ = list(self.recorded().requests.values())[-1]
        self.assertEqual(text.split("\n")[:-1], before["lines"], uri)

    def test_a_restart_leaves_alone_what_is_switched_off(self):
        self.start_ready()
        other = self.home / "notes.lua"
        other.write_text("local x = 1\n", encoding="utf-8")
        self.neovim.type(f":Efimd toggle filetype<CR>:set hidden<CR>:edit {other}<CR>")
        opened = lambda: [params["textDocument"]["uri"] for params in self.recorded().shows("textDocument/didOpen")]
        self.neovim.wait_for("the other document", state=None, holds=lambda: len(opened()) == 2)
        self.neovim.type(":Efimd restart<CR>")
        self.neovim.wait_for("it again", state=None, holds=lambda: len(opened()) > 2)
        self.neovim.type("iprint(")
        self.neovim.wait_for("a question", state=None, holds=lambda: self.recorded().requests)
        self.assertEqual([uri.rpartition("/")[2] for uri in opened()[2:]], ["notes.lua"])

    def test_a_bridge_that_is_killed_is_followed_by_another_but_not_for_ever(self):
        self.start_ready()
        self.show_another("name")
        ended = set()
        for _ in range(kRestartsMax + 1):
            self.neovim.wait_for("one that serves", state=None, holds=lambda: self.serving() and set(self.bridges()) - ended)
            bridge, = set(self.bridges()) - ended
            os.kill(bridge, signal.SIGKILL)
            ended.add(bridge)
            self.neovim.wait_for("its end", state=None, holds=lambda bridge=bridge: bridge not in self.bridges())
        failed = lambda: self.neovim.lua("require('efimd').statusline()") == "efimd!"
        self.neovim.wait_for("the failure", state=None, holds=failed)
        messages = self.neovim.wait_for("the message", lambda state: ":Efimd restart starts it again" in state["messages"])["messages"]
        self.assertRegex(messages, r"efimd: \S+ ended by signal 9\. :Efimd doctor says what is wrong")
        self.assertEqual(self.bridges(), [])
        self.neovim.type("<Esc>:Efimd restart<CR>")
        self.show_another("value")
