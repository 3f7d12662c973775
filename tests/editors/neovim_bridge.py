"""The end of `efimd lsp` under a Neovim, and its next start, for neovim_plugin_test.py."""

from neovim_plugin import Plugin


class Bridge(Plugin):
    def show_another(self, name):
        self.neovim.type(f"<Esc>Go    def set_{name}(self, {name}")
        self.neovim.ghost_at_cursor()

    def clients(self):
        return self.neovim.lua("vim.tbl_map(function(client) return client.id end, (vim.lsp.get_clients or vim.lsp.get_active_clients)())")

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
