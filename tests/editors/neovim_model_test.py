#!/usr/bin/env python3
"""The Neovim plugin where only the bundled model is: it names a better one once, and loads it if the user wants that.

    neovim_model_test.py EFIMD new-own|old NEOVIM_DIRECTORY

Exit status 77 (skipped) when this machine cannot have that Neovim, with the reason as the last line.
"""

import json
import pathlib
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from neovim_plugin import Plugin, kSkipped, neovim_for  # noqa: E402

sys.path.insert(0, str(kRoot / "tests" / "net" / "get"))
from hub_server import Hub, cut_off_after, serve_catalogue  # noqa: E402
from private_daemon import small_model  # noqa: E402



class Offer(Plugin):
    model = None  # the bundled one

    def setUp(self):
        super().setUp()
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        serve_catalogue(self.hub, (kRoot / "models/catalog.toml").read_text(), small_model(self.efimd).read_bytes())
        for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS", "HF_TOKEN", "HF_HUB_OFFLINE"):
            self.environment.pop(name, None)
        self.environment["HF_ENDPOINT"] = self.hub.endpoint

    def messages_when(self, holds):
        return self.neovim.wait_for("the message", lambda state: holds(state["messages"]))["messages"]

    def listed(self):
        return self.neovim.lua("vim.fn.json_decode(vim.fn.system({ require('efimd.config').values.cmd[1], 'model', 'list', '--json' }))")

    def ask(self):
        """:Efimd model, until its question is on the screen; for a mode that waits the state cannot be asked."""
        self.neovim.lua("(function() vim.ui.select = function(items, options, chosen) vim.g.asked = options.prompt; "
                        "vim.g.offered = items; _G.answer = chosen end return 1 end)()")
        self.neovim.type("<Esc>:Efimd model<CR>")
        self.neovim.wait_for("the question", lambda _: self.neovim.lua("vim.g.asked ~= nil"))
        return self.neovim.lua("vim.g.asked")

    def answer(self, text):
        self.neovim.lua(f"(function() _G.answer({json.dumps(text)}) return 1 end)()")

    def test_it_is_said_once_with_size_and_licence(self):
        self.start_ready(options="offer_model = true,")
        said = self.messages_when(lambda text: ":Efimd model gets it" in text)
        self.assertRegex(said, r"For this machine \S+ is recommended \(\d+\.\d GiB, [\w.-]+\)")
        self.assertFalse(self.neovim.lua("require('efimd.model').offer()"))
        self.neovim.close()
        self.start_ready(options="offer_model = true,")
        self.assertFalse(self.neovim.lua("require('efimd.model').offer()"))
        self.assertEqual(self.hub.requests, [])  # nothing is asked of a network for an offer

    def test_who_does_not_want_it_is_asked_nothing(self):
        self.start_ready(options="offer_model = false,")
        self.assertFalse(self.neovim.lua("require('efimd.model').offer()"))

    def test_where_it_cannot_be_remembered_nothing_is_said_and_nothing_fails(self):
        (self.home / ".local").mkdir(exist_ok=True)
        (self.home / ".local/share").touch()
        watched = "vim.fn.mkdir = function(path, ...) vim.g.tried = path; return vim.call('mkdir', path, ...) end\n"
        self.start_ready(init=watched + self.setup_lua("offer_model = true,"))
        self.neovim.wait_for("the offer", state=None, holds=lambda: self.neovim.lua("vim.g.tried == vim.fn.stdpath('data')"))
        self.assertNotIn("model.lua", self.neovim.state()["messages"])  # Neovim itself complains of that folder

    def test_where_no_model_fits_and_where_there_is_no_efimd_that_is_said(self):
        said = []
        for text, command in (("#!/bin/sh\necho '{\"models\": [], \"recommended\": null}'\n", self.home / "small"), (None, "/no/efimd")):
            if text:
                command.write_text(text, encoding="utf-8")
                command.chmod(0o755)
            self.start(init=self.setup_lua().split("require")[0] + "require('efimd').setup({ filetypes = { ['*'] = false }, "
                       f"cmd = {{ {json.dumps(str(command))} }} }})\n")
            self.neovim.type(":Efimd model<CR>")
            said.append(self.messages_when(lambda text: "efimd" in text).strip())
            self.neovim.close()
        self.assertEqual(said, ["efimd: none of the models that it knows fits into this machine's memory", "efimd: /no/efimd was not found"])

    def test_a_model_that_is_wanted_is_loaded_with_progress_and_used(self):
        self.start_ready(options="offer_model = false,")
        prompt = self.ask()
        self.assertRegex(prompt, r"recommends \S+ for this machine \(\d+\.\d GiB, ")
        self.hub.faults.append(cut_off_after(8_000_000))  # it goes on by itself
        self.answer("Get it")
        said = self.messages_when(lambda text: "is in use" in text)
        self.assertRegex(said, r"\d0 % of")
        used, = (model for model in self.listed() if model["used"])
        self.assertEqual(used["origin"], "Hugging Face")

    def test_no_loads_nothing_and_a_failure_is_told(self):
        self.start_ready(options="offer_model = false,")
        self.ask()
        self.answer("No")
        self.assertEqual(self.hub.requests, [])
        self.hub.repositories.clear()
        self.answer("Get it")
        self.messages_when(lambda text: "the hub has it no more" in text)
        self.assertTrue(all(model["bundled"] for model in self.listed()))


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
