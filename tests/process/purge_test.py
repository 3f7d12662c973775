"""What was purged is nowhere: of files with every kind of name, under every spelling that editors have, on disk and in memory.

EFIMD_PURGED_FILES says of how many files; by hand 1,000, which takes eleven minutes.
"""

import json
import os
import pathlib
import random
import re
import time
import unittest

from user import UserTest, poll
from process_memory import count_in, kSampleBytes, memory_of

kFiles = int(os.environ.get("EFIMD_PURGED_FILES", "6"))
kSamples = 10_000
kHeaderBytes = 4096  # of an arena
kLines = 12
kKeptInMemory = 64  # files of which the daemon knows where they were edited
kAskedAgainS = 20
kListedS = 300 + 2 * kFiles  # what a busy machine may take


def escaped(path, plain, hexadecimal):
    """`path` as a URI, with each byte escaped that is not in `plain`."""
    return "file://" + "".join(chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in plain)
                               else hexadecimal % byte for byte in os.fsencode(path))


def spellings(path):
    """VS Code's; Neovim's, of two ages; with a host; and with needless parts."""
    usual, bare = "-._~/", "-._~/!$&'()*+,;=:@"
    return [escaped(path, usual, "%%%02X"), escaped(path, bare, "%%%02X"), escaped(path, bare, "%%%02x"),
            "file://localhost" + escaped(path, usual, "%%%02x")[7:],
            escaped(str(path.parent) + "/./x/..//" + path.name, bare, "%%%02X")]


def marks_of(number):
    """What the text of a file says, and no other text."""
    return [f"value_{number}_{spelling}_" for spelling in range(len(spellings(pathlib.Path("/x"))))]


def text_in(pieces, prefix):
    """The marks that are in one of the pieces."""
    return {mark for piece in pieces for mark in re.findall(prefix, piece)}


@unittest.skipUnless(os.geteuid() == 0, "reads another process's memory")
class PurgeTest(UserTest):
    # All pages have room in memory and on disk: 0.4 MB for each spelling of a file.
    config = f"[completion]\nmax_tokens = 1\n[cache]\nmemory_mb = {256 + 2 * kFiles}\ndisk_mb = {256 + 3 * kFiles}\n"

    def paths(self):
        """Names with each character in turn; every third is reached through a link."""
        project = self.folder / "project"
        project.mkdir()
        (self.folder / "link").symlink_to(project)
        odd = [chr(code) for code in range(1, 127) if chr(code) not in "/\0\n"] + ["é", "漢", "\U0001F600"]
        for number in range(kFiles):
            name = f"{number}{odd[number % len(odd)]}{odd[number * 7 % len(odd)]}.py"
            (project / name).write_text("")
            yield (self.folder / "link" if number % 3 == 2 else project) / name

    def listed(self):
        done = self.run_efimd("cache", "list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {file["uri"]: file["tokensDisk"] for file in json.loads(done.stdout)["files"]}

    def store_all(self, editor, uris):
        """Waits until pages of all files are on disk.

        A busy machine may look at a file after 200 ms only; what was asked by then is not stored before the next question. Nothing is
        stored while there are questions, so they come rarely.
        """
        def is_stored():
            nonlocal asked
            tokens = self.listed()
            missing = [uri for uri, _ in uris if tokens.get(uri, 0) == 0]
            if missing and time.monotonic() - asked > kAskedAgainS:
                for uri in missing:
                    editor.complete(uri, kLines - 1, 0)
                asked = time.monotonic()
            return not missing

        asked = time.monotonic()
        poll(is_stored, "pages of all files are on disk", kListedS)

    def arenas(self):
        return [arena.read_bytes() for arena in (self.folder / "cache" / "kv").glob("*.kv")]

    def samples(self):
        """Of all pages' KV; none of which repeats itself, as zeros do."""
        chooser = random.Random(23)
        found = set()
        for arena in self.arenas():
            places = range(kHeaderBytes, len(arena) - kSampleBytes, kSampleBytes)
            for place in chooser.sample(places, min(len(places), 4 * kSamples)):
                sample = arena[place:place + kSampleBytes]
                if len(set(sample)) > 24:
                    found.add(sample)
        return chooser.sample(sorted(found), min(len(found), kSamples))

    def type_into(self, editor, number, path):
        """The file's URIs. Under each it has another text, and is open when it is purged where `stays` says so."""
        stays = number % 4 == 1
        for mark, uri in zip(marks_of(number), spellings(path)):
            text = "".join(f"{mark}{line} = read({number * 31 + line * 7})\n" for line in range(kLines))
            editor.open(uri, text)
            editor.complete_when_loaded(uri, kLines, 0)
            yield uri, stays

    def close(self, editor, uris):
        for uri in uris:
            editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def test_nothing_of_purged_files_is_left(self):
        editor = self.editor()
        editor.initialize(receipts=True)
        paths = list(self.paths())
        uris = [each for number, path in enumerate(paths) for each in self.type_into(editor, number, path)]
        self.store_all(editor, uris)
        self.close(editor, [uri for uri, stays in uris if not stays])
        editor.ask("efim/version", None)
        samples, pid = self.samples(), self.daemon_pid()
        before = count_in(memory_of(pid), samples)
        # Those of open files stay there, at most so many; half a minute after they were closed, the others' are gone.
        kept = min(len({uri for uri, stays in uris if stays}), kKeptInMemory) / len({uri for uri, _ in uris})
        self.assertGreater(before, kept * len(samples) / 2, "the daemon's memory is looked at in the wrong way")
        began = time.monotonic()
        for path in paths:
            purged = self.run_efimd("cache", "purge", "--", path)
            self.assertEqual(purged.returncode, 0, f"{path}: {purged.stderr}")
        took = time.monotonic() - began
        self.assertEqual({uri: tokens for uri, tokens in self.listed().items() if tokens > 0}, {})
        self.assertEqual(count_in(self.arenas(), samples), 0)
        on_disk = [file.read_bytes() for file in (self.folder / "cache").rglob("*") if file.is_file()]
        self.assertEqual(text_in(on_disk, rb"value_\d+_\d_"), set())
        after = count_in(memory_of(pid), samples)
        print(f"{len(paths)} files in {len(uris)} spellings, purged in {took:.0f} s; of {len(samples)} samples {before} were in memory, {after} are")
        self.assertEqual(after, 0)
        self.assert_alive(pid)
        # An open text is the editor's own; once it is closed, nothing of it is left either.
        self.close(editor, [uri for uri, stays in uris if stays])
        # The session answers before the engine's thread has closed them: that one may be in the middle of a step.
        editor.ask("efim/version", None)
        for process, name in ((pid, "the daemon"), (editor.child.pid, "the bridge")):
            poll(lambda: not text_in(memory_of(process), rb"value_\d+_\d_\d"), f"no closed text is in {name}'s memory")
        self.assertEqual(count_in(memory_of(pid), samples), 0)


class TheLook(unittest.TestCase):
    def test_it_finds_what_a_look_at_every_place_finds(self):
        chooser = random.Random(1)
        found = 0
        for _ in range(300):  # around the borders of blocks, with zeros before and after
            piece = bytearray(4096 * chooser.randrange(1, 5) + 8 * chooser.randrange(3))
            samples = [bytes(zeros) + chooser.randbytes(kSampleBytes - zeros - 8) + bytes(8) for zeros in (0, 8, 48)]
            for sample in samples:
                at = max(4096 * chooser.randrange(5) + 8 * chooser.randrange(-9, 9), 0)
                if at + kSampleBytes <= len(piece):
                    piece[at:at + kSampleBytes] = sample
            everywhere = {bytes(piece[at:at + kSampleBytes]) for at in range(0, len(piece), 8)}
            wanted = len(everywhere & set(samples))
            self.assertEqual(count_in([bytes(piece)], samples), wanted)
            found += wanted
        self.assertGreater(found, 300)


if __name__ == "__main__":
    unittest.main()
