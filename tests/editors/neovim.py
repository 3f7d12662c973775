"""A real Neovim for tests: headless on a socket, driven by keys, asked for its text and ghost text."""

import contextlib
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from neovim_rpc import NeovimApi, RemoteError  # noqa: E402
from polling import looks  # noqa: E402

kPatienceS = 120  # what a busy machine may take; a good run needs milliseconds

kTexts = pathlib.Path(__file__).with_name("texts")
kSettings = (kTexts / "settings.txt").read_text(encoding="utf-8")  # a Python file, with room at its end
kRepeated = (kTexts / "repeated.txt").read_text(encoding="utf-8")  # a Python file that ends where it may say again what it said before
kTyped = (kTexts / "typed.txt").read_text(encoding="utf-8")  # a function to type there, of more than 200 keystrokes

# A function in Lua: the ghost text of Neovim itself and of the plugin, in the current buffer.
kGhosts = """function()
  local ghosts = {}
  for _, name in ipairs({ 'nvim.lsp.inline_completion', 'efimd' }) do
    local space = vim.api.nvim_create_namespace(name)
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
      local text = ''
      for _, chunk in ipairs(mark[4].virt_text or {}) do text = text .. chunk[1] end
      for _, line in ipairs(mark[4].virt_lines or {}) do
        text = text .. '\\n'
        for _, chunk in ipairs(line) do text = text .. chunk[1] end
      end
      table.insert(ghosts, { row = mark[2], column = mark[3], text = text, by = name })
    end
  end
  return ghosts
end"""
kState = f"""(function()
  local ghosts = ({kGhosts})()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local clients = vim.tbl_filter(function(client) return client.name == 'efimd' end,
    (vim.lsp.get_clients or vim.lsp.get_active_clients)())
  return {{
    mode = vim.api.nvim_get_mode().mode,
    row = cursor[1] - 1, column = cursor[2],
    lines = vim.api.nvim_buf_get_lines(0, 0, -1, true),
    ghosts = ghosts, clients = #clients,
    messages = vim.fn.execute('messages'), error = vim.v.errmsg,
  }}
end)()"""


class Neovim:
    """Its home is that of `environment`, its configuration the text `init`."""

    def __init__(self, program, environment, file, init):
        self.home = pathlib.Path(environment["HOME"])
        configuration = self.home / ".config" / "nvim" / "init.lua"
        configuration.parent.mkdir(parents=True, exist_ok=True)
        configuration.write_text(init, encoding="utf-8")
        self.environment, self.address, self.api = environment, str(self.home / "nvim.sock"), None
        # Where a file of Python is opened Neovim looks for a Python with a module for it, and starts several: no subject here.
        self.child = subprocess.Popen([program, "--headless", "--cmd", "let g:loaded_python3_provider = 0", "--listen", self.address, file],
                                      env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for("its socket", self.listens, state=None)
        self.wait_for("its start", lambda: self.lua("vim.v.vim_did_enter") == 1, state=None)

    def listens(self):
        """Whether the socket takes connections: its name is there a moment before."""
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            self.api = NeovimApi(self.address, kPatienceS)
            return True
        return False

    def type(self, keys):
        self.api.call("nvim_input", keys)

    def lua(self, expression):
        """The value of a Lua expression, as JSON can say it."""
        # A list, because an expression may have no value. nil alone would be no JSON text in 0.7.
        values = json.loads(self.api.call("nvim_exec_lua", f"return vim.fn.json_encode({{ {expression} }})", []))
        return values[0] if values else None

    def state(self):
        return self.lua(kState)

    def wait_for(self, what, holds, state=state, patience_s=kPatienceS):
        """Asks until `holds` does, and returns that state; what holds() cannot wait for is a failure."""
        for _ in looks(patience_s):
            found = (state(self),) if state else ()
            if holds(*found):
                return found[0] if found else None
            if self.child.poll() is not None:
                raise AssertionError(f"Neovim ended while {what} was awaited")
        raise AssertionError(f"{what} did not come in {patience_s} s; last seen: {found}")

    def ghost_at_cursor(self):
        """The state once there is ghost text at the cursor; its text is state["ghost"]."""
        def seen(state):
            for ghost in state["ghosts"]:
                if (ghost["row"], ghost["column"]) == (state["row"], state["column"]) and ghost["text"]:
                    state["ghost"], state["ghost_by"] = ghost["text"], ghost["by"]
            return "ghost" in state
        return self.wait_for("ghost text at the cursor", seen)

    def wait_for_model(self, efimd):
        """Some versions ask once after the last change: a request that came while the model was loading would be the last."""
        def ready():
            done = subprocess.run([efimd, "status", "--json"], env=self.environment, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return done.returncode == 0 and json.loads(done.stdout)["state"]["name"] == "ready"
        self.wait_for("the language client", lambda state: state["clients"] == 1)
        self.wait_for("the model", ready, state=None)

    def log_errors(self):
        """What the language client took for errors; a server's stderr is a log, which nobody is shown."""
        logs = [self.home / ".local/state/nvim/lsp.log", self.home / ".cache/nvim/lsp.log"]
        return [line for log in logs if log.exists() for line in log.read_text().splitlines()
                if line.startswith("[ERROR]") and '"stderr"' not in line]

    def close(self):
        try:
            self.type("<C-\\><C-n>:qa!<CR>")
        except RemoteError:
            pass  # it may be gone before it has answered
        self.api.close()
        try:
            self.child.wait(kPatienceS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise
