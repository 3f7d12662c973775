#!/usr/bin/env python3
"""editors/neovim in a real Neovim: ghost text is seen, taken whole and in parts, never old; and the plugin says what it does.

    neovim_plugin_test.py EFIMD new-native|new-own|old NEOVIM_DIRECTORY

new-native: Neovim 0.12 and its own inline completion; new-own: the same Neovim, with the plugin's drawing; old: the system's nvim,
from 0.7 on. A picture of the terminal is left in NEOVIM_DIRECTORY/screenshots. Exit status 77 (skipped) when this machine cannot have that Neovim, with the reason as the last line.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from lsp_recorder import is_offered, offset_of  # noqa: E402
from neovim_bridge import Bridge  # noqa: E402, F401
from neovim_buffers import Buffers, Folders  # noqa: E402, F401
from neovim_ghost import Drawing, Leaving, Replacing, Undo  # noqa: E402, F401
from neovim_keys import Keys  # noqa: E402, F401
from neovim import kPatienceS, kRepeated, kSettings, kTyped  # noqa: E402
from neovim_plugin import Plugin, kPlugin, kSkipped, kTypist, lua_string, neovim_for, read_only  # noqa: E402
from terminal_picture import svg  # noqa: E402

kInvoked = 1  # InlineCompletionTriggerKind


class Typing(Plugin):
    def begin(self, **settings):
        self.start_ready(**settings)
        self.neovim.type("Go    def set(self, name")
        return self.neovim.ghost_at_cursor()

    def take(self, keys, before):
        self.neovim.type(keys)
        return self.neovim.wait_for("the accepted text", lambda state: state["lines"] != before["lines"])

    def test_the_way_of_showing_is_the_one_of_this_neovim(self):
        by = "nvim.lsp.inline_completion" if self.mode == "new-native" else "efimd"
        self.assertEqual(self.begin()["ghost_by"], by)

    def test_tab_inserts_exactly_the_ghost_text_and_the_daemon_is_told(self):
        before = self.begin()
        after = self.take("<Tab>", before)
        row, column = before["row"], before["column"]
        grown = before["lines"][row][:column] + before["ghost"] + before["lines"][row][column:]
        self.assertEqual(after["lines"][row:row + 1 + grown.count("\n")], grown.split("\n"))
        self.neovim.wait_for("efimd.accept", state=None, holds=lambda: self.accepted() == 1)
        self.assert_no_complaints()

    def test_a_key_typed_right_after_tab_comes_behind_what_tab_takes(self):
        before = self.begin()
        after = self.take("<Tab>,", before)  # at once, as in a macro or over a slow line
        row, column = before["row"], before["column"]
        grown = before["lines"][row][:column] + before["ghost"] + "," + before["lines"][row][column:]
        self.assertEqual(after["lines"][row:row + 1 + grown.count("\n")], grown.split("\n"))

    def accepted(self):
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return sum(session["accepted"] for session in json.loads(done.stdout)["sessions"])

    def test_a_word_is_taken_and_the_daemon_is_told(self):
        before = self.begin()
        word = re.match(r"\s*(?:\w+|[^\w\s]+)", before["ghost"])[0]
        after = self.take("<M-Right>", before)
        self.assertEqual(after["lines"][before["row"]], before["lines"][before["row"]] + word)
        self.neovim.wait_for("efim/didPartiallyAccept", state=None,
                             holds=lambda: self.recorded().shows("efim/didPartiallyAccept"))
        self.assertEqual(self.recorded().shows("efim/didPartiallyAccept")[0]["acceptedLength"], len(word))
        self.assert_no_complaints()

    def test_the_next_word_is_taken_before_the_next_answer(self):
        before = self.begin()
        words = re.match(r"(?:\s*(?:\w+|[^\w\s]+)){2}", before["ghost"])[0]
        after = self.take("<M-Right><M-Right>", before)
        self.assertEqual(after["lines"][before["row"]], before["lines"][before["row"]] + words)

    def test_a_line_is_taken_without_those_below_it(self):
        before = self.begin()
        after = self.take("<M-l>", before)
        self.assertEqual(after["lines"][before["row"]],
                         before["lines"][before["row"]] + before["ghost"].split("\n")[0])
        self.assertEqual(len(after["lines"]), len(before["lines"]))

    def test_a_dismissed_suggestion_is_gone_and_tab_is_a_tab(self):
        self.begin()
        self.neovim.type("<C-]>")
        state = self.neovim.wait_for("no ghost text", lambda state: not state["ghosts"])
        self.neovim.type("<Tab>")
        after = self.neovim.wait_for("a tab", lambda now: now["lines"] != state["lines"])
        self.assertRegex(after["lines"][state["row"]], r"name +$")

    def test_a_dismissed_suggestion_does_not_come_again(self):
        dismissed = self.begin()["ghost"]
        self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
        dismissed_in = list(self.recorded().requests.values())[-1]
        asked = len(self.recorded().requests)
        self.neovim.type("<C-]>")
        self.neovim.wait_for("efim/didDismiss", state=None, holds=lambda: self.recorded().shows("efim/didDismiss"))
        self.neovim.type("<Space><BS>")

        def answered_again():
            requests = list(self.recorded().requests.values())
            return len(requests) > asked and requests[-1] == dismissed_in and not self.recorded().unanswered()
        self.neovim.wait_for("the answer to the same question", state=None, holds=answered_again)
        # What another source has for the same place may come in its stead.
        for ghost in self.neovim.state()["ghosts"]:
            self.assertFalse(ghost["text"].startswith(dismissed) or dismissed.startswith(ghost["text"]), (dismissed, ghost))
        self.assertEqual(len(self.recorded().shows("efim/didDismiss")), 1)

    def test_who_looks_for_the_next_suggestion_asks_by_hand(self):
        self.begin()
        self.assertNotIn(kInvoked, self.recorded().kinds)
        self.neovim.type("<M-]>")
        self.neovim.wait_for("a question by hand", state=None, holds=lambda: self.recorded().kinds[-1] == kInvoked)
        self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
        self.neovim.ghost_at_cursor()

    def test_shown_items_are_told_once_each(self):
        self.begin()
        self.neovim.wait_for("efim/didShow", state=None, holds=lambda: self.recorded().shows("efim/didShow"))
        self.assertEqual(len(self.recorded().shows("efim/didShow")), 1)
        self.neovim.wait_for("efim/didFocus", state=None, holds=lambda: self.recorded().shows("efim/didFocus"))

    def test_brackets_that_an_editor_closed_are_not_doubled(self):
        self.start_ready(name="sum.cpp", text="#include <vector>\n\nint sum(const std::vector<int>& values) {\n  int total = 0;\n}\n")
        self.neovim.type("4Go  for ()<Left>")
        state = self.neovim.ghost_at_cursor()
        after = self.take("<Tab>", state)
        line = after["lines"][state["row"]]
        self.assertEqual(line.count("("), line.count(")"), line)

    def test_switched_off_there_is_nothing_and_on_it_comes_back(self):
        self.begin()
        self.neovim.type("<Esc>:Efimd toggle buffer<CR>A, v")
        state = self.neovim.wait_for("the typed text", lambda state: state["lines"][state["row"]].endswith(", v"))
        self.assertEqual(state["ghosts"], [])
        self.assertEqual(self.neovim.lua("require('efimd').statusline()"), "efimd off")
        self.neovim.type("<Esc>:Efimd toggle buffer<CR>Aalue")
        self.neovim.ghost_at_cursor()

    def test_a_filetype_can_be_left_out(self):
        self.start(options="filetypes = { python = false }")
        self.neovim.type("Godef f(")
        state = self.neovim.wait_for("the typed text", lambda state: state["lines"][-1] == "def f(")
        self.assertEqual((state["clients"], state["ghosts"]), (0, []))

    def test_a_completion_menu_hides_ghost_text(self):
        self.start_ready()
        self.neovim.type(":set completeopt=menuone,noselect<CR>Go    def set(self, name):<CR>    self.")
        before = self.neovim.ghost_at_cursor()
        self.neovim.type("<C-n>")
        self.neovim.wait_for("the menu", lambda _: self.neovim.lua("vim.fn.pumvisible()") == 1)
        self.neovim.wait_for("no ghost text", lambda state: not state["ghosts"])
        self.neovim.type("<C-e>")
        self.assertEqual(self.neovim.state()["lines"], before["lines"])

    def test_a_window_that_only_opens_leaves_ghost_text(self):
        before = self.begin()
        options = "{ relative = 'cursor', row = 1, col = 0, width = 9, height = 2 }"
        self.neovim.lua(f"vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), false, {options})")
        self.assertEqual(self.neovim.state()["ghosts"], before["ghosts"])

    def test_by_key_only_nothing_is_asked_before_the_key_and_one_question_for_it(self):
        self.start_ready(options="trigger = 'key'")
        self.neovim.type("Go    def set(self, name")
        self.neovim.wait_for("the typed text", lambda state: state["lines"][-1].endswith("name"))
        self.neovim.type("<M-\\>")
        state = self.neovim.ghost_at_cursor()
        self.assertEqual(len(self.recorded().requests), 1)
        line = state["lines"][-1]
        self.neovim.type("<C-]>, x<M-\\>")
        self.neovim.wait_for("the next question", state=None, holds=lambda: len(self.recorded().requests) > 1)
        asked = [text.split("\n")[-2] for _, text, _ in self.recorded().requests.values()]
        self.assertEqual(asked, [line, line + ", x"], "what is typed between the keys is not asked")
        self.assertEqual(self.recorded().kinds, [kInvoked, kInvoked])

    def test_what_was_asked_while_the_model_was_loading_is_asked_again(self):
        # What a model's steps cost is measured when it loads: for seconds, with scalar arithmetic in one thread.
        self.environment["EFIMD_ISA"] = "scalar"
        pathlib.Path(self.environment["EFIMD_CONFIG"]).write_text("[completion]\nconfidence = 0\n[device]\nthreads = 1\n", encoding="utf-8")
        self.start()
        self.neovim.wait_for("the language client", lambda state: state["clients"] == 1)
        self.neovim.type("Go    def set(self, name")
        state = self.neovim.ghost_at_cursor()
        reasons = [receipt.get("reason", "") for receipt in self.recorded().said("efim/receipt")]
        self.assertTrue(any(reason.startswith("the model is still loading") for reason in reasons), reasons)
        self.assertTrue(state["lines"][-1].endswith("name"), "no key was pressed since")
        self.assert_no_complaints()


class Honesty(Plugin):
    def test_200_keystrokes_show_nothing_old_and_leave_nothing_unanswered(self):
        self.start_ready(options="keys = { accept = false }")
        self.neovim.type("Go")
        keys = [{"\n": "<CR>", " ": "<Space>"}.get(key, key) for key in kTyped][:200]
        self.assertEqual(len(keys), 200)
        before_s = self.daemon_cpu_s()
        self.neovim.type("<C-\\><C-o>:set noautoindent indentexpr= indentkeys=<CR>")
        script = self.home / "typist.lua"
        script.write_text(kTypist, encoding="utf-8")
        started = time.monotonic()
        self.neovim.lua(f"loadfile({lua_string(script)})({lua_string(json.dumps(keys))})")
        self.neovim.wait_for("the end of typing", state=None, patience_s=400,
                             holds=lambda: self.neovim.lua("vim.g.typed ~= nil"))
        took_s, cpu_s = time.monotonic() - started, self.daemon_cpu_s() - before_s
        samples = [json.loads(sample) for sample in self.neovim.lua("vim.g.typed")]
        self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
        recording = self.recorded()
        outcomes, shown = recording.outcomes(), 0
        for sample in samples:
            text = "\n".join(sample["lines"]) + "\n"
            for ghost in filter(lambda ghost: ghost["text"], sample["ghosts"]):
                shown += 1
                at = offset_of(text, {"line": ghost["row"], "character": ghost["column"]})
                self.assertEqual((ghost["row"], ghost["column"]), (sample["row"], sample["column"]), sample)
                self.assertTrue(is_offered(outcomes, text, at, ghost["text"]), sample)
        self.assertEqual("\n".join(self.neovim.state()["lines"]), kSettings + kTyped[:200])
        self.assertGreater(shown, 5)
        errors = [each for answers in recording.answers.values() for each in answers if "error" in each]
        self.assertEqual([each for each in errors if each["error"]["code"] not in (-32800, -32801, -32802)], [])
        print(f"200 keystrokes in {took_s:.1f} s: {len(recording.requests)} requests, ghost text in {shown} of "
              f"{len(samples)} states of the screen, {cpu_s:.2f} s of the daemon's CPU time", file=sys.stderr)

    def daemon_cpu_s(self):
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        fields = pathlib.Path(f"/proc/{json.loads(done.stdout)['pid']}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_a_daemon_that_is_killed_comes_back_without_a_word(self):
        self.start_ready()
        self.neovim.type("Go    def set(self, na")
        self.neovim.ghost_at_cursor()
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        os.kill(json.loads(done.stdout)["pid"], 9)
        self.neovim.type("me")
        self.neovim.wait_for_model(self.efimd)
        self.neovim.type(", value):<CR>    self.")
        self.neovim.ghost_at_cursor()
        self.assert_no_complaints()


class Talking(Plugin):
    def messages_when(self, holds):
        return self.neovim.wait_for("the message", lambda state: holds(state["messages"]))["messages"]

    def test_an_efimd_that_is_not_there_is_said_once_with_what_to_do(self):
        init = f"vim.opt.runtimepath:prepend({lua_string(kPlugin)})\nrequire('efimd').setup({{ cmd = {{ '/no/efimd' }} }})\n"
        self.start(init=init)
        self.neovim.type(":new<CR>:setfiletype python<CR>i x<Esc>:edit other.py<CR>")
        messages = self.messages_when(lambda text: "/no/efimd was not found" in text)
        self.assertEqual(messages.count("was not found"), 1)
        self.assertIn("PATH", messages)

    def test_options_of_the_wrong_kind_are_said_once_and_defaults_hold(self):
        self.start(options="debounce_ms = 'soon', keys = { acept = '<Tab>' }, server = { maxTokens = 0 }")
        messages = self.messages_when(lambda text: "debounce_ms" in text)
        for part in ("debounce_ms must be an integer from 0 to 10000", "keys.acept is no option",
                     "server.maxTokens must be an integer", ":help efimd-options"):
            self.assertIn(part, messages)
        self.neovim.wait_for_model(self.efimd)

    def test_a_wrong_word_after_a_command_is_answered_with_the_right_ones(self):
        self.start()
        for command, said in (("toggle bogus", "toggle takes all, filetype, buffer; not bogus"), ("log bogus", "log takes nothing; not bogus"),
                              ("bogus", "no such command; there are doctor, log, model, purge, restart, status, toggle")):
            before = self.neovim.state()["messages"]
            self.neovim.type(f":Efimd {command}<CR>")
            self.assertIn(said, self.messages_when(lambda text, before=before: text != before))

    def said(self, part):
        """How often `part` was said so far."""
        return self.neovim.state()["messages"].count(part)

    def test_an_old_daemon_is_said_once_with_what_to_do(self):
        old = subprocess.Popen([sys.executable, kRoot / "tests/support/old_daemon.py",
                                pathlib.Path(self.environment["EFIMD_RUNTIME_DIR"], "daemon.sock")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(old.communicate)
        self.addCleanup(old.kill)
        old.stdout.readline()
        self.start()
        self.neovim.type("Godef f(")
        self.messages_when(lambda text: "Run 'efimd stop'" in text)
        self.neovim.type("x, y")
        self.neovim.wait_for("the typed text", lambda state: state["lines"][-1].startswith("def f(x, y"))
        self.assertEqual(self.said("older efimd"), 1)

    def test_a_model_that_fails_to_load_is_said_once_however_often_a_daemon_starts(self):
        self.environment["EFIMD_MODEL"] = str(self.home / "none.gguf")
        self.start()
        failed = lambda: self.neovim.lua("require('efimd').statusline()") == "efimd!"
        self.neovim.wait_for("the failure", state=None, holds=failed)  # what is typed before need not be asked about
        for round_ in range(3):
            asked = len(self.recorded().requests)
            self.neovim.type(f"<Esc>Godef f{round_}(")
            self.neovim.wait_for("a request", state=None, holds=lambda: len(self.recorded().requests) > asked)
            self.neovim.wait_for("an answer", state=None, holds=failed)
            self.messages_when(lambda text: "none.gguf" in text)
            self.neovim.wait_for("every answer", state=None, holds=lambda: not self.recorded().unanswered())
            subprocess.run([self.efimd, "stop"], env=self.environment, check=True, capture_output=True)
        self.assertEqual(self.said("gives no completions"), 1)

    def test_a_file_over_the_size_limit_is_said_once_and_others_are_served(self):
        (self.home / "large.txt").write_text(("a line of a file that is too large. " * 200 + "\n") * (65 * 2**20 // 7201), encoding="utf-8")
        self.start_ready()
        self.neovim.type(f":set hidden<CR>:edit {self.home}/large.txt<CR>ggOx<Esc>:buffer settings.py<CR>")
        self.neovim.wait_for("the message", lambda state: "large.txt: document: " in state["messages"], patience_s=150)
        self.neovim.type("Go    def set(self, name")
        self.neovim.ghost_at_cursor()
        self.assertEqual(self.said("No completions in"), 1)

    @unittest.skipUnless(os.geteuid() == 0, "a folder is mounted read-only by root only")
    def test_in_a_folder_that_is_mounted_read_only_all_is_as_everywhere(self):
        folder = self.home / "read-only"
        folder.mkdir()
        program = self.home / "neovim-there"
        program.write_text("#!/bin/sh\n" + read_only(folder) + f" {self.neovim_program} \"$@\"\n", encoding="utf-8")
        program.chmod(0o755)
        self.neovim_program = str(program)
        self.start_ready(name="read-only/settings.py")
        self.neovim.type("Go    def set(self, name")
        before = self.neovim.ghost_at_cursor()
        self.neovim.type("<Tab>")
        self.neovim.wait_for("the accepted text", lambda state: state["lines"] != before["lines"])
        # Neovim itself says that the file is read-only.
        self.assertNotIn("efimd", before["messages"])
        self.assertEqual(self.neovim.log_errors(), [])
        self.neovim.type("<Esc>:silent! write<CR>:let g:written = 1<CR>")
        self.neovim.wait_for("the refused write", state=None, holds=lambda: self.neovim.lua("vim.g.written") == 1)
        self.assertEqual((folder / "settings.py").read_text(), kSettings, "it is read-only")

    def test_a_server_that_is_no_efimd_is_said(self):
        fake = self.home / "old"
        fake.write_text("#!/usr/bin/env python3\nimport json, sys\n"
                        "size = int(sys.stdin.buffer.readline().split(b':')[1]); sys.stdin.buffer.readline()\n"
                        "identity = json.loads(sys.stdin.buffer.read(size))['id']\n"
                        "body = json.dumps({'jsonrpc': '2.0', 'id': identity, 'result': {'capabilities': {}}}).encode()\n"
                        "sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n%b' % (len(body), body))\n"
                        "sys.stdout.flush(); sys.stdin.read()\n")
        fake.chmod(0o755)
        self.start(init=f"vim.opt.runtimepath:prepend({lua_string(kPlugin)})\n"
                        f"require('efimd').setup({{ cmd = {{ {lua_string(fake)} }} }})\n")
        self.messages_when(lambda text: "does not offer inline completion" in text)

    def test_status_and_health_show_what_is_known(self):
        self.start_ready()
        self.neovim.type("Godef f(")
        self.neovim.ghost_at_cursor()
        self.neovim.wait_for("the receipt", lambda _: self.neovim.lua("require('efimd.state').receipt ~= nil"))
        self.assertRegex(self.neovim.lua("require('efimd.state').receipt_text()"), r"^\d+ of \d+ tokens evaluated, \d+ ms")
        self.assertRegex(self.neovim.lua("require('efimd').statusline()"), r"^efimd( \*| model| recalled(\+model)?)?$")
        self.neovim.type("<Esc>:Efimd status<CR>")
        self.neovim.wait_for("the status", lambda state: any("parameters" in line for line in state["lines"]))
        self.neovim.type(":Efimd doctor<CR>")
        self.neovim.wait_for("the report", lambda state: any("processor" in line for line in state["lines"]))
        self.neovim.type(":checkhealth efimd<CR>")
        parts = ("this editor", "the model is ready", "tokens evaluated", "this machine", "processor", "`*.pem`")
        self.neovim.wait_for("the health report",
                             lambda state: all(part in "\n".join(state["lines"]) for part in parts))

    def statusline_when(self, what, holds):
        """Once holds(text, last receipt): the text that the expression of :help efimd-statusline draws, and the receipt's source."""
        expression = "[[%{%v:lua.require'efimd'.statusline()%}]]"
        seen = []

        def found():
            text, receipt = self.neovim.lua(f"{{ vim.api.nvim_eval_statusline({expression}, {{}}).str, require('efimd.state').receipt or {{}} }}")
            seen[:] = text, (receipt or {}).get("source")
            return text != "efimd *" and holds(text, receipt or {})
        self.neovim.wait_for(what, state=None, holds=found)
        return seen

    def type_what_is_recalled(self):
        # One key, so that nothing is typed through.
        self.start_ready(name="entries.py", text=f"{kRepeated.rstrip()} = rea\n")
        self.statusline_when("the plain state before a suggestion", lambda text, _: text == "efimd")
        self.neovim.type("GAd")
        self.assertTrue(self.neovim.ghost_at_cursor()["ghost"].startswith("_entries_of("))
        text, source = self.statusline_when("a recalled suggestion's source", lambda text, _: "recalled" in text)
        self.assertEqual(text, f"efimd {source}")

    def test_the_statusline_names_the_source_of_the_last_suggestion_in_its_buffer(self):
        self.type_what_is_recalled()
        self.neovim.type("<Esc>:new<CR>")
        self.statusline_when("the plain state in another buffer", lambda text, _: text == "efimd")
        self.neovim.type(":close<CR>")
        self.statusline_when("the source", lambda text, _: "recalled" in text)
        self.assert_no_complaints()

    def test_the_statusline_names_no_source_after_an_answer_without_a_suggestion(self):
        self.type_what_is_recalled()
        self.neovim.type("<C-]><Space><BS>")
        text, _ = self.statusline_when("the answer after a dismissal",
                                       lambda _, receipt: receipt.get("reason") == "it was just rejected here")
        self.assertEqual(text, "efimd")

    def test_a_files_cache_is_purged_by_the_command(self):
        self.start_ready(text=kSettings * 4)
        self.neovim.type("Go    def set(self, name")
        self.neovim.ghost_at_cursor()

        def stored():
            listed = subprocess.run([self.efimd, "cache", "list", "--json"], env=self.environment, check=True,
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return any(file["tokensDisk"] > 0 for file in json.loads(listed.stdout)["files"])

        self.neovim.wait_for("pages on disk", state=None, holds=stored)
        self.neovim.type("<Esc>:Efimd purge<CR>")
        self.messages_when(lambda text: re.search("purged: [1-9][0-9]* tokens", text))

    def test_the_help_is_found(self):
        shutil.copytree(kPlugin, self.home / "plugin")
        self.start(init=f"vim.opt.runtimepath:prepend({lua_string(self.home / 'plugin')})\n")
        self.neovim.type(":help efimd-options<CR>")
        state = self.neovim.wait_for("the help", lambda state: any("debounce_ms" in line for line in state["lines"]))
        for name in ("accept_word", "filetypes", "statusline"):
            self.assertTrue(any(name in line for line in state["lines"]), name)

    def test_the_helps_tags_are_those_that_neovim_makes(self):
        shutil.copytree(kPlugin / "doc", self.home / "doc", ignore=shutil.ignore_patterns("tags"))
        subprocess.run([self.neovim_program, "--clean", "--headless", "-c", f"helptags {self.home}/doc", "-c", "quit"], env=self.environment,
                       stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertEqual((kPlugin / "doc/tags").read_text(encoding="utf-8"), (self.home / "doc/tags").read_text(encoding="utf-8"))


class Terminal(Plugin):
    def leave(self, tmux, environment):
        """Neovim ends by itself, and with it all that it started; a terminal that is taken away leaves them writing for a while."""
        deadline = time.monotonic() + kPatienceS
        for keys in (["Escape"], [":qa!", "Enter"]):
            subprocess.run([*tmux, "send-keys", *keys], env=environment, check=False, capture_output=True)
        while subprocess.run([*tmux, "has-session"], env=environment, check=False, capture_output=True).returncode == 0:
            if time.monotonic() > deadline:
                subprocess.run([*tmux, "kill-server"], env=environment, check=False, capture_output=True)
            time.sleep(0.02)  # the pace of asking; it decides nothing
        while self.sessions() and time.monotonic() < deadline:  # its `efimd lsp`, which would start another daemon
            time.sleep(0.02)

    def sessions(self):
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        clients = [session["client"] for session in json.loads(done.stdout)["sessions"]] if done.returncode == 0 else []
        return [client for client in clients if client.startswith("Neovim")]

    @unittest.skipUnless(shutil.which("tmux"), "tmux is missing; scripts/deps --tests installs it")
    def test_ghost_text_is_on_the_screen_of_a_terminal(self):
        file = self.home / "settings.py"
        file.write_text(kSettings, encoding="utf-8")
        init = self.home / "init.lua"
        init.write_text(self.setup_lua(), encoding="utf-8")
        tmux = ["tmux", "-S", str(self.home / "tmux"), "-f", "/dev/null"]
        environment = self.environment | {"TERM": "xterm-256color"}

        def run(*arguments):
            return subprocess.run([*tmux, *arguments], env=environment, check=True, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL).stdout

        run("new-session", "-d", "-x", "80", "-y", "24", self.neovim_program, "-u", str(init), str(file))
        self.addCleanup(self.leave, tmux, environment)
        run("send-keys", "Go    def set(self, name")
        deadline = time.monotonic() + kPatienceS
        while True:
            screen = run("capture-pane", "-p")
            if re.search(r"def set\(self, name[^\s]", screen):
                pictures = pathlib.Path(self.directory, "screenshots")
                pictures.mkdir(parents=True, exist_ok=True)
                (pictures / f"{self.mode}.svg").write_text(svg(run("capture-pane", "-e", "-p"), 80, 24), encoding="utf-8")
                break
            self.assertLess(time.monotonic(), deadline, screen)
            time.sleep(0.1)  # the pace of looking; it decides nothing


def main():
    efimd, mode, directory, *names = sys.argv[1:]
    program, missing = neovim_for(mode, directory)
    if missing:
        print(missing)
        return kSkipped
    Plugin.efimd, Plugin.neovim_program, Plugin.mode, Plugin.directory = efimd, program, mode, directory
    return not unittest.main(argv=[sys.argv[0], *names], verbosity=2, exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
