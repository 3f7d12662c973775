"""Which buffers of a Neovim are documents of the daemon, for neovim_plugin_test.py."""

from neovim_plugin import Plugin


class Buffers(Plugin):
    def begin_without_a_name(self):
        """Ghost text in a new buffer without a name; its number."""
        self.start_ready()
        self.neovim.type(f":set hidden<CR>:enew<CR>:read {self.home}/settings.py<CR>")
        self.show_another("name")
        return self.neovim.lua("vim.api.nvim_get_current_buf()")

    def show_another(self, name):
        self.neovim.type(f"<Esc>Go<Esc>0C    def set_{name}(self, {name}")
        self.neovim.ghost_at_cursor()

    def opened(self):
        return [params["textDocument"]["uri"] for params in self.recorded().shows("textDocument/didOpen")]

    def closed(self):
        return [params["textDocument"]["uri"] for params in self.recorded().shows("textDocument/didClose")]

    def test_each_buffer_without_a_name_is_a_document_of_its_own(self):
        first = self.begin_without_a_name()
        self.neovim.type("<Esc>:enew<CR>ix = ")
        self.neovim.wait_for("the second one", state=None, holds=lambda: len(self.opened()) == 3)
        second = self.neovim.lua("vim.api.nvim_get_current_buf()")
        self.assertEqual(self.opened()[1:], [f"untitled:nvim-{first}", f"untitled:nvim-{second}"])
        self.neovim.type(f"<Esc>:buffer {first}<CR>")
        self.show_another("value")
        self.neovim.type(f"<Esc>:bwipe! {second}<CR>")
        self.neovim.wait_for("its end", state=None, holds=self.closed)
        self.assertEqual(self.closed(), [f"untitled:nvim-{second}"])
        self.show_another("key")
        self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
        self.assertNotIn("not open", (self.home / "state/efimd.log").read_text(encoding="utf-8"))

    def test_a_buffer_that_gets_a_name_is_the_document_of_its_file(self):
        buffer = self.begin_without_a_name()
        self.neovim.type(f"<Esc>:write {self.home}/named.py<CR>")
        self.neovim.wait_for("the file's document", state=None, holds=lambda: any(uri.endswith("/named.py") for uri in self.opened()))
        self.assertIn(f"untitled:nvim-{buffer}", self.closed())
        self.show_another("value")
        self.assertTrue(list(self.recorded().requests.values())[-1][0].endswith("/named.py"))

    def test_a_buffer_that_is_renamed_is_served_under_its_new_name_at_once(self):
        buffer = self.begin_without_a_name()
        before = f"untitled:nvim-{buffer}"
        for name in ("first.py", "second.py"):
            self.neovim.type(f"<Esc>:file {self.home}/{name}<CR>")
            self.neovim.wait_for(name, state=None, holds=lambda name=name: self.opened()[-1].endswith("/" + name))
            self.assertEqual(self.closed()[-1], before)
            before = self.opened()[-1]
            self.show_another(name[:3])
            self.assertEqual(list(self.recorded().requests.values())[-1][0], before)
        self.neovim.type("<Esc>:write<CR>")
        self.show_another("value")
        self.assertNotIn("not open", (self.home / "state/efimd.log").read_text(encoding="utf-8"))

    def test_a_buffer_whose_filetype_is_set_is_a_document_in_that_language(self):
        buffer = self.begin_without_a_name()
        languages = lambda: [params["textDocument"]["languageId"] for params in self.recorded().shows("textDocument/didOpen")][1:]
        self.assertEqual(languages(), [""])
        self.neovim.type("<Esc>:set filetype=python<CR>")
        self.neovim.wait_for("the document in Python", state=None, holds=lambda: languages() == ["", "python"])
        self.assertEqual(self.closed(), [f"untitled:nvim-{buffer}"])
        self.neovim.type(":set filetype=python<CR>")
        self.show_another("value")
        self.assertEqual(languages(), ["", "python"])
        self.assertNotIn("not open", (self.home / "state/efimd.log").read_text(encoding="utf-8"))

    def attached(self):
        return self.neovim.lua("vim.tbl_filter(function(buf) return require('efimd.client').attached(buf) end, vim.api.nvim_list_bufs())")

    def test_what_is_no_text_of_the_user_is_no_document(self):
        self.start_ready()
        for command in (f":edit {self.home}<CR>", ":Efimd log<CR>", ":Efimd status<CR>", ":Efimd status<CR>", ":terminal<CR>",
                        "<C-\\><C-n>:copen<CR>", "q:", ":quit<CR>:new | setlocal buftype=nofile<CR>"):
            before = self.neovim.lua("vim.api.nvim_get_current_buf()")
            self.neovim.type(f"<Esc>{command}")
            self.neovim.wait_for(command, state=None, holds=lambda before=before: before != self.neovim.lua("vim.api.nvim_get_current_buf()"))
            self.assertEqual(self.attached(), [1], command)
        self.assertEqual(self.neovim.state()["messages"].strip(), "")
        self.assertEqual(len(self.opened()), 1)

    def test_an_empty_buffer_that_a_terminal_takes_over_is_no_document_any_more(self):
        self.start_ready()
        self.neovim.type(":enew<CR>")
        self.neovim.wait_for("the empty one", state=None, holds=lambda: self.opened()[1:])
        self.neovim.type(":terminal<CR>")
        self.neovim.wait_for("its end", state=None, holds=lambda: self.closed() == self.opened()[1:])
        self.assertEqual(self.attached(), [1])
        self.assertEqual(self.neovim.state()["messages"].strip(), "")


class Folders(Plugin):
    def test_the_repository_of_the_folder_and_folders_that_cd_enters_are_projects(self):
        for folder in ("work/.git", "work/src", "notes"):
            (self.home / folder).mkdir(parents=True)
        self.start_ready(name="work/src/settings.py", init=f"vim.cmd('cd {self.home}/work/src')\n" + self.setup_lua())
        self.assertEqual(self.neovim.lua("require('efimd.client').get().config.root_dir"), f"{self.home}/work")
        self.neovim.type("".join(f":silent cd {self.home}/{folder}<CR>" for folder in ("work", "notes", "work/src", "notes")) + ":new<CR>")
        self.neovim.wait_for("the new buffer", state=None, holds=lambda: len(self.recorded().shows("textDocument/didOpen")) == 2)
        added = [params["event"] for params in self.recorded().shows("workspace/didChangeWorkspaceFolders")]
        notes = f"{self.home}/notes"
        self.assertEqual(added, [{"added": [{"uri": f"file://{notes}", "name": notes}], "removed": []}])
        self.assertEqual(self.neovim.log_errors(), [])
