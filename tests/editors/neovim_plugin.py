"""A Neovim with editors/neovim and a daemon of its own, for neovim_plugin_test.py."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support")]
from lsp_recorder import Recording, recorded_program  # noqa: E402
from neovim import Neovim, kGhosts, kSettings  # noqa: E402
from private_daemon import kSmallModel, private_daemon  # noqa: E402

kSkipped = 77
kPlugin = kRoot / "editors" / "neovim"

# Types kTyped at 60 ms a key, looks up for ghost text now and then, and writes down each change of what is on the screen.
kTypist = """
local keys, samples, last = vim.fn.json_decode(...), {}, nil
local ghosts = """ + kGhosts + """
local function sample()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local now = vim.fn.json_encode({ lines = vim.api.nvim_buf_get_lines(0, 0, -1, true),
    row = cursor[1] - 1, column = cursor[2], ghosts = ghosts() })
  if now ~= last then table.insert(samples, now) end
  last = now
end
local sampler = vim.loop.new_timer()
sampler:start(5, 5, vim.schedule_wrap(sample))
local next_key, look_up
-- Until there is ghost text, or until it is clear that none is offered here.
look_up = function(until_ms, i)
  if #ghosts() > 0 or vim.loop.now() > until_ms then return next_key(i) end
  vim.defer_fn(function() look_up(until_ms, i) end, 20)
end
next_key = function(i)
  if i > #keys then
    return vim.defer_fn(function() sampler:stop(); vim.g.typed = samples end, 1000)
  end
  vim.api.nvim_input(keys[i])
  vim.defer_fn(function()
    if i % 40 == 0 then return look_up(vim.loop.now() + 5000, i + 1) end
    next_key(i + 1)
  end, 60)
end
next_key(1)
"""


def read_only(folder):
    """Words of a shell before a command, for which `folder` is mounted read-only."""
    return (f"exec unshare --mount sh -c 'mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec \"$@\"' sh")


def lua_string(text):
    return json.dumps(str(text))


class Plugin(unittest.TestCase):
    efimd = neovim_program = mode = directory = None
    model = kSmallModel
    options = ""  # further ones of setup(), as Lua

    def setUp(self):
        # What is shown is the subject here, not whether it is worth showing.
        self.environment = self.enterContext(private_daemon(self.efimd, "[completion]\nconfidence = 0\n", self.model))
        self.home = pathlib.Path(self.environment["HOME"])
        self.recording_file = self.home / "said.jsonl"

    def setup_lua(self, options=""):
        program = recorded_program(self.efimd, self.recording_file)
        native = "native = false," if self.mode == "new-own" else ""
        offer = "" if "offer_model" in options else "offer_model = false,"
        return (f"vim.opt.runtimepath:prepend({lua_string(kPlugin)})\n"
                "vim.o.swapfile = false; vim.o.expandtab = true; vim.o.shiftwidth = 4\n"
                f"require('efimd').setup({{ cmd = {{ {lua_string(program)}, 'lsp' }}, {native} {offer} {options} }})\n")

    def start(self, name="settings.py", text=kSettings, options="", init=None):
        file = self.home / name
        file.write_text(text, encoding="utf-8")
        wide = "vim.o.columns = 1000\n"  # what is drawn below a window's edge would look like another line
        self.neovim = Neovim(self.neovim_program, self.environment, str(file), wide + (init or self.setup_lua(options)))
        self.addCleanup(self.neovim.close)
        return self.neovim

    def start_ready(self, **settings):
        self.start(**settings).wait_for_model(self.efimd)
        return self.neovim

    def recorded(self):
        return Recording(self.recording_file)

    def assert_no_complaints(self):
        state = self.neovim.state()
        self.assertEqual((state["messages"].strip(), state["error"]), ("", ""))
        self.assertEqual(self.neovim.log_errors(), [])


def neovim_for(mode, directory):
    """(program, None), or (None, why there is none)."""
    if mode == "old":
        program = shutil.which("nvim")
        return (program, None) if program else (None, "no nvim in the PATH; scripts/deps --tests installs Debian's")
    installer = pathlib.Path(__file__).with_name("install_neovim")
    found = subprocess.run([installer, directory], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if found.returncode == kSkipped:
        return None, found.stderr.strip()
    if found.returncode != 0:
        raise SystemExit(f"install_neovim failed: {found.stderr}")
    return found.stdout.strip(), None
