"""How the plugin draws a suggestion, and takes it into the text, for neovim_plugin_test.py."""

from neovim import kRepeated
from neovim_plugin import Plugin


class Drawing(Plugin):
    def drawn(self, line, column, rest, tail=0):
        """The ghost text of `rest` at a byte of `line`, in a window of 40 columns with tabs of 4."""
        if not hasattr(self, "neovim"):
            self.start(init=self.setup_lua("filetypes = { ['*'] = false }"))
            self.neovim.type(":set columns=40 tabstop=4 nonumber signcolumn=no virtualedit=onemore<CR>")
        return self.neovim.lua(f"""(function()
          vim.api.nvim_buf_set_lines(0, 0, -1, true, {{ {lua_text(line)}, 'end' }})
          vim.api.nvim_win_set_cursor(0, {{ 1, {column} }})
          require('efimd.ghost').show(0, {lua_text(rest)}, {tail})
          local mark = vim.api.nvim_buf_get_extmarks(0, require('efimd.ghost').namespace, 0, -1, {{ details = true }})[1][4]
          local rows = {{ mark.virt_text[1][1] }}
          for _, below in ipairs(mark.virt_lines or {{}}) do table.insert(rows, below[1][1]) end
          return rows
        end)()""")

    def test_what_covers_text_goes_on_below_at_the_windows_edge(self):
        self.assertEqual(self.drawn("x = ;  // c", 4, "a" * 50 + "\n  b"), ["a" * 36, "a" * 14, "  b;  // c"])
        # 36 cells before the edge hold 18 wide characters; behind a single cell they hold 17.
        self.assertEqual(self.drawn("x = ;", 4, "日" * 20 + "\nb"), ["日" * 18, "日日", "b;"])
        self.assertEqual(self.drawn("x = ;", 4, "a" + "日" * 20 + "\nb"), ["a" + "日" * 17, "日日日", "b;"])

    def test_text_with_a_tab_is_covered_to_its_end(self):
        # "x" is in column 3, so the tab behind it is four cells wide; at the line's start it would be three.
        self.assertEqual(self.drawn("abcx\ty", 3, "z\nb"), ["z" + " " * 5, "bx\ty"])

    def test_tabs_between_the_text_are_drawn_as_blanks(self):
        if self.mode == "old":
            self.skipTest("there is no text between the text before 0.10")
        self.assertEqual(self.drawn("abc", 3, "\tdef\t日\tg\n\tb"), [" def 日  g", "\tb"])
        # Neovim's own drawing, as it is after each of its answers.
        marks = self.neovim.lua("""(function()
          local space = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
          vim.api.nvim_buf_set_extmark(0, space, 0, 3, { virt_text = { { '\\tdef', 'ComplHint' }, { ' (1/2)', 'ComplHintMore' } },
            virt_lines = { { { '\\tb', 'ComplHint' } } }, virt_text_pos = 'inline' })
          require('efimd.ghost').expand_tabs(0, space)
          return vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
        end)()""")
        self.assertEqual([(mark[3]["virt_text"], mark[3]["virt_lines"]) for mark in marks],
                         [([[" def", "ComplHint"], [" (1/2)", "ComplHintMore"]], [[["\tb", "ComplHint"]]])])

    def test_nothing_is_lost_of_a_long_line_with_others_below(self):
        rows = self.drawn("x = ", 4, "a" * 50 + "\nb")
        self.assertEqual("".join(rows), "a" * 50 + "b")
        if self.mode == "old":
            self.assertEqual(rows, ["a" * 36, "a" * 14, "b"])


class Leaving(Plugin):
    def test_control_c_leaves_no_ghost_text(self):
        self.start_ready()
        self.neovim.type("Go    def set(self, name")
        before = self.neovim.ghost_at_cursor()
        self.neovim.type("<C-c>")  # no InsertLeave comes
        self.neovim.wait_for("no ghost text", lambda state: state["mode"] == "n" and not state["ghosts"])
        self.neovim.type("a, v")
        self.neovim.wait_for("the typed text", lambda state: state["lines"][-1] == before["lines"][-1] + ", v")
        self.neovim.ghost_at_cursor()


class Replacing(Plugin):
    def test_in_replace_mode_a_key_finds_nothing_to_dismiss(self):
        self.start_ready(text=f"{kRepeated.rstrip()} = rea\n")
        self.neovim.type("GAd")
        self.neovim.ghost_at_cursor()
        asked = len(self.recorded().requests)
        self.neovim.type("<BS><Esc>A <Esc>Rd")
        if self.mode == "new-native":  # Neovim asks there, and draws nothing of the answer
            self.neovim.wait_for("a question", state=None, holds=lambda: len(self.recorded().requests) > asked)
        self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
        self.neovim.wait_for("replace mode", lambda state: state["mode"] == "R" and not state["ghosts"])
        self.assertFalse(self.neovim.lua("require('efimd').visible()"))
        self.neovim.type("<C-]><Esc>")
        self.neovim.wait_for("normal mode", lambda state: state["mode"] == "n")
        self.assertEqual(self.recorded().shows("efim/didDismiss"), [])


class Undo(Plugin):
    def test_undo_takes_a_suggestion_back_before_what_was_typed(self):
        self.start_ready()
        self.neovim.type("Go    def set(self, name")
        before = self.neovim.ghost_at_cursor()
        self.neovim.type("<Tab>")
        self.neovim.wait_for("the accepted text", lambda state: state["lines"] != before["lines"])
        self.neovim.type("<Esc>u")
        self.neovim.wait_for("the typed text alone", lambda state: state["mode"] == "n" and state["lines"] == before["lines"])


def lua_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
