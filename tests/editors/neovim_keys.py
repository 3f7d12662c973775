"""What the plugin's keys do where the user, or Neovim, had mapped them, for neovim_plugin_test.py."""

from neovim_plugin import Plugin

# Each kind of mapping that a configuration may have: a Vim expression, keys that are mapped on, a function, and an expression in Lua.
kMapped = r"""
vim.cmd([[inoremap <expr> <Tab> pumvisible() <Bar><Bar> 0 ? "\<lt>C-n>" : "vim\<lt>Left>"]])
vim.cmd([[imap <M-l> <Plug>(mine)]])
vim.cmd([[inoremap <Plug>(mine) plug<Left>]])
vim.keymap.set('i', '<M-Right>', function() vim.api.nvim_put({ 'call' }, 'c', false, true) end)
vim.keymap.set('i', '<C-]>', function() return 'lua<Left>' end, { expr = true })
vim.keymap.set('i', '<M-]>', 'mine')
"""


class Keys(Plugin):
    def test_tab_ends_an_abbreviation_where_it_did_without_efimd(self):
        if self.mode != "old":
            self.skipTest("Neovim's own <Tab> ends none from 0.11 on")
        self.start(options="enabled = false")
        self.neovim.type(":iabbrev nam name<CR>Gonam<Tab>x")
        self.neovim.wait_for("the long form", lambda state: state["lines"][-1].split() == ["name", "x"])

    def test_where_nothing_is_suggested_a_mapped_key_does_what_it_did(self):
        again = "require('efimd').setup({ enabled = false })\n"  # as by :source
        self.start(text="x\n", init=kMapped + self.setup_lua("enabled = false") + again)
        self.neovim.type("o<Tab>.<Esc>o<M-l>.<Esc>o<M-Right>.<Esc>o<C-]>.<Esc>o<M-]>.<Esc>")
        state = self.neovim.wait_for("the last line", lambda state: state["lines"][-1] == "mine.")
        self.assertEqual(state["lines"], ["x", "vi.m", "plu.g", "call.", "lu.a", "mine."])
        self.assert_no_complaints()

    def test_a_mapped_tab_takes_what_is_suggested(self):
        self.start_ready(init=kMapped + self.setup_lua())
        self.neovim.type("Go    def set(self, name")
        before = self.neovim.ghost_at_cursor()
        self.neovim.type("<Tab>,")
        after = self.neovim.wait_for("the accepted text", lambda state: state["lines"][-1].endswith(","))
        row = before["row"]
        self.assertEqual("\n".join(after["lines"][row:]), before["lines"][row] + before["ghost"] + ",")
