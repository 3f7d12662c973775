"""The six commands of training/README.md, from nothing to a measured GGUF: a minute's version on this project's own code; with
EFIMD_TRAINING=long, packages from Debian and npm, as in the README's small configuration."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import support
from support import training

README = support.ROOT / "training/README.md"
LONG = os.environ.get("EFIMD_TRAINING") == "long"


def small_commands() -> list:
    """The words of the README's small configuration, command by command."""
    block = re.search(r"<!-- small -->\s*```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL).group(1)
    lines = block.replace("\\\n", " ").strip().split("\n")
    return [shlex.split(line, comments=True) for line in lines]


class Pipeline(support.TrainingTest):
    def run_all(self, replaced: dict) -> None:
        """The README's commands, with words replaced."""
        commands = small_commands()
        self.assertEqual([command[3] for command in commands], ["corpus", "tokenizer", "samples", "train", "export", "evaluate"])
        for command in commands:
            self.assertEqual(command[:3], ["python3", "-m", "training"])
            words = [replaced.get(word, word.replace("small/", f"{self.folder}/")) for word in command[3:]]
            # One thread: where cores are busy, two that wait for each other take fifteen times its CPU time.
            words += {"train": ["--threads", "1"], "evaluate": ["--bench", support.BENCH]}.get(words[0], [])
            self.last = training(*words, program=True)

    def check_result(self) -> None:
        model = self.folder / "model.gguf"
        ran = subprocess.run([support.EFIMD, "model", "info", str(model), "--json", "--no-speed"], capture_output=True, text=True, check=True)
        self.assertIs(json.loads(ran.stdout)["fragmentTrained"], True)
        self.assertRegex(self.last.stdout, r"\| small, EFIM \| \d+\.\d \(")
        self.assertTrue((self.folder / "run/loss.png").exists())
        # A model that learned nothing answers with the same or nothing everywhere.
        texts = {line.get("text") for line in support.records(self.folder / "evaluation/small-random.jsonl")[1:]}
        self.assertGreater(len(texts), 5)

    @unittest.skipIf(LONG, "the long one runs")
    def test_a_minute_from_this_projects_code_to_a_measured_model(self):
        packages = self.folder / "packages.txt"
        packages.write_text("\n".join(f"folder {support.ROOT / room} MIT {split}" for room, split in (
            ("daemon", "train"), ("engine", "train"), ("editors", "train"), ("lsp", "validation"), ("cache_store", "test"))))
        self.run_all({"training/packages-small.txt": str(packages), "1000": "50", "2048": "1024", "200": "25"})
        self.check_result()

    @unittest.skipUnless(LONG, "EFIMD_TRAINING=long runs it, with scripts/test --long")
    def test_packages_from_debian_and_npm_to_a_measured_model(self):
        self.run_all({})
        self.check_result()


if __name__ == "__main__":
    unittest.main()
