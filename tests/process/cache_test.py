"""KV outlives the daemon: restarts, kill -9, purges, what never goes to the disk; with the real binary and the bundled model."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import unittest

from cache_user import CacheUser, poll
from process_memory import count_in, memory_of
from user import kEfimd, kPatienceS, kSmallModelF16


class CacheTest(CacheUser):
    def test_after_a_restart_the_first_answer_finds_its_prompt(self):
        cold, suggested = self.type_in()
        self.assertEqual(cold["restoredTokens"], 0)
        self.wait_until_stored(cold)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        warm, again = self.type_in()
        self.check_restored(cold, warm)
        self.assertEqual(again, suggested)
        status = self.status()["store"]
        self.assertEqual(status["restoredTokens"], warm["restoredTokens"])
        self.assertGreater(status["savedS"], 0)

    def test_8_bit_kv_is_restored_too_and_is_another_than_f16(self):
        self.environment["EFIMD_MODEL"] = str(kSmallModelF16)  # whose logits it changes little enough
        config = self.folder / "config.toml"
        config.write_text(self.config + "[cache]\nkv_type = \"q8\"\n")
        self.assertIn("if its error is small", self.run_efimd("doctor").stdout)
        cold, suggested = self.type_in()
        kv = self.status()["model"]["kv"]
        self.assertEqual(kv["type"], "q8")
        self.assertIn(kv["reason"], self.run_efimd("doctor").stdout)
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        warm, again = self.type_in()
        self.check_restored(cold, warm)
        self.assertEqual(again, suggested)
        self.run_efimd("stop")
        config.write_text(self.config)
        other, _ = self.type_in()
        self.assertEqual(other["restoredTokens"], 0)
        self.assertEqual(self.status()["model"]["kv"]["type"], "f16")
        poll(lambda: len(list(self.store.glob("*.kv"))) == 2, "each type of KV has an arena")
        arenas = list(self.store.glob("*.kv"))
        sizes = sorted(int.from_bytes(arena.read_bytes()[8:16], sys.byteorder)
                       for arena in arenas)
        self.assertLess(sizes[0], 0.6 * sizes[1])

    def test_kernels_that_round_otherwise_do_not_use_each_others_pages(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        # As an older build would: other arithmetic over the same store.
        self.environment["EFIMD_ISA"] = "scalar"
        other, _ = self.type_in(whole=False)
        self.assertEqual(other["restoredTokens"], 0)
        self.run_efimd("stop")
        del self.environment["EFIMD_ISA"]
        warm, _ = self.type_in()
        self.check_restored(cold, warm)

    def test_two_daemons_at_one_store_both_answer_and_one_says_that_it_keeps_nothing(self):
        cold, suggested = self.type_in()
        self.wait_until_stored(cold)
        store = self.status()["store"]
        self.assertTrue(store["usable"])
        first = self.environment["EFIMD_RUNTIME_DIR"]
        self.environment["EFIMD_RUNTIME_DIR"] = str(self.folder / "run2")
        try:
            receipt, again = self.type_in()
            self.assertEqual(again, suggested)
            self.assertEqual(receipt["restoredTokens"], 0)
            # It waits a while for the first one to end.
            poll(lambda: "another efimd uses it" in self.status()["store"].get("trouble", ""), "the second daemon's trouble")
            self.assertFalse(self.status()["store"]["usable"])
        finally:
            self.run_efimd("stop")
            self.environment["EFIMD_RUNTIME_DIR"] = first
        self.assertEqual(self.run_efimd("cache", "verify").returncode, 0)

    def test_after_kill_9_too(self):
        cold, suggested = self.type_in()
        self.wait_until_stored(cold)
        self.assertIsNotNone(self.kill_daemon())
        warm, again = self.type_in()
        self.check_restored(cold, warm)
        self.assertEqual(again, suggested)

    def test_purge_leaves_nothing_on_disk_and_says_so(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        arena, = self.store.glob("*.kv")
        pages = [page for page in self.pages_of(arena) if any(page)]
        self.assertGreater(len(pages), 1)
        purged = self.run_efimd("cache", "purge", self.file)
        self.assertEqual(purged.returncode, 0, purged.stderr)
        self.assertEqual(self.stored(), 0)
        rest = arena.read_bytes() if arena.exists() else b""
        for page in pages:
            self.assertNotIn(page[:256], rest)
            self.assertNotIn(page[2048:2304], rest)
        self.assertNotIn(self.uri, [file["uri"] for file in self.status()["files"]])
        again, _ = self.type_in()
        self.assertEqual(again["restoredTokens"], 0)

    def test_a_purge_of_everything_forgets_tastes_also_without_a_daemon(self):
        taste = self.folder / "state" / "taste"
        taste.parent.mkdir(exist_ok=True)
        taste.write_text("efimd taste 1\npy 1 2 3 4 0\n")
        purged = self.run_efimd("cache", "purge", "--all")
        self.assertEqual(purged.returncode, 0, purged.stderr)
        self.assertFalse(taste.exists())
        self.assertRegex(purged.stdout, r"disk: .* of \d+(\.\d)? [MG]iB")

    def test_a_purge_finds_a_file_under_its_editors_spelling_and_says_when_it_does_not(self):
        page = self.folder / "+page (é).py"
        page.write_text(self.text)
        (self.folder / "link").symlink_to(self.folder)
        bare = f"file://localhost{self.folder}/./+page%20(%c3%a9).py"  # as some editors write it
        linked = (self.folder / "link" / page.name).as_uri()
        for uri in (bare, linked):
            self.type_in(uri, whole=False)
            poll(lambda uri=uri: self.stored(uri) > 0, "pages are on disk")
        purged = self.run_efimd("cache", "purge", page)
        self.assertEqual(purged.returncode, 0, purged.stderr)
        for uri in (bare, linked):
            self.assertEqual(self.stored(uri), 0)
        self.assert_fails(self.run_efimd("cache", "purge", page), "nothing of")
        again, _ = self.type_in(bare, whole=False)
        self.assertEqual(again["restoredTokens"] + again["reusedTokens"], 0)

    def test_what_is_open_when_it_is_purged_stays_off_the_disk_until_it_is_opened_again(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        editor = self.editor()
        editor.initialize(receipts=True)
        editor.open(self.uri, self.text)
        place = (self.line, len(self.lines[self.line]))
        editor.complete_when_loaded(self.uri, *place)
        self.assertEqual(self.run_efimd("cache", "purge", self.file).returncode, 0)
        editor.complete(self.uri, *place)
        # Pages of a file that was asked about later are written; of this one none.
        other = self.folder.as_uri() + "/other.py"
        text = self.text.replace("def ", "def  ")
        editor.open(other, text)
        receipt = editor.complete(other, *place)[1]
        poll(lambda: self.stored(other) >= receipt["promptTokens"] // 32 * 32, "the other file's pages are on disk")
        self.assertEqual(self.stored(), 0)
        in_memory = self.run_efimd("cache", "purge", self.file)
        self.assertRegex(in_memory.stdout, r"purged: [1-9]\d* tokens")
        editor.leave()
        again, _ = self.type_in()
        self.wait_until_stored(again)

    @staticmethod
    def pages_of(arena):
        data = arena.read_bytes()
        size = int.from_bytes(data[8:16], sys.byteorder)
        return [data[at:at + size] for at in range(4096, len(data), size)]

    def test_purge_works_without_a_daemon_too(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        self.assertGreater(self.stored(), 0)
        self.assertEqual(self.run_efimd("cache", "purge", self.folder).returncode, 0)
        self.assertEqual(self.stored(), 0)
        self.assertEqual(self.run_efimd("cache", "verify").returncode, 0)

    def test_the_store_is_for_its_user_alone(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.assertEqual(stat.S_IMODE(self.store.stat().st_mode), 0o700)
        for file in self.store.iterdir():
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600, file)

    def test_excluded_documents_never_reach_the_disk(self):
        (self.folder / "config.toml").write_text(
            self.config + "secret_files = true\n[cache]\nexclude = [\"private/\"]\ngitignore = true\n")
        (self.folder / ".git").mkdir()
        (self.folder / ".gitignore").write_text("ignored.py\n")
        (self.folder / "private").mkdir()
        editor = self.editor()
        editor.initialize(receipts=True)
        for name in ("ignored.py", "private/a.py", "id_rsa"):
            uri = (self.folder / name).as_uri()
            editor.open(uri, self.text)
            editor.complete_when_loaded(uri, self.line, len(self.lines[self.line]))
        editor.open("untitled:Untitled-1", self.text)
        editor.complete_when_loaded("untitled:Untitled-1", self.line, len(self.lines[self.line]))
        editor.leave()
        # A file that may be stored is written by the same idle time; after it, the others would be.
        other = (self.folder / "other.py").as_uri()
        receipt, _ = self.type_in(other, "# " + "x = 1\n" * 400)
        poll(lambda: self.stored(other) > 0, "the other file is on disk")
        listed = json.loads(self.run_efimd("cache", "list", "--json").stdout)["files"]
        self.assertEqual([file["uri"] for file in listed], [other])
        self.assertGreater(receipt["promptTokens"], 0)

    def test_what_is_excluded_later_is_taken_off_the_disk(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        (self.folder / "config.toml").write_text(self.config + "[cache]\nexclude = [\"code.py\"]\n")
        self.editor().initialize()
        poll(lambda: self.stored() == 0, "the excluded file is off the disk")

    def test_exclusions_that_cannot_be_read_keep_everything_off_the_disk_and_what_is_there_on_it(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        before = self.stored()
        for wrong in ("[cache]\nexclude = \"other.py\"\n", "[cache]\nexclude = [\"other.py\"]\n[log\n"):
            (self.folder / "config.toml").write_text(self.config + wrong)
            self.type_in((self.folder / "other.py").as_uri())
            self.assertIsNone(self.status()["store"])
            self.assert_fails(self.run_efimd("cache", "list"), "correct config.toml")
            self.run_efimd("stop")
            self.assertEqual(self.stored(), before)
            self.assertEqual(self.stored((self.folder / "other.py").as_uri()), 0)

    def test_files_with_secrets_are_not_completed_and_say_why(self):
        uri = (self.folder / ".env").as_uri()
        receipt, items = self.type_in(uri)
        self.assertEqual(items, [])
        self.assertIn("secret", receipt["reason"])
        self.assertIn("completion.secret_files", receipt["reason"])

    def test_a_read_only_cache_folder_costs_only_the_cache(self):
        cache = self.folder / "cache"
        cache.write_text("")  # nobody, root included, can make a folder in it
        receipt, _ = self.type_in()
        self.assertGreater(receipt["promptTokens"], 0)
        status = self.status()["store"]
        self.assertFalse(status["usable"])
        self.assertIn(str(cache), status["trouble"])

    def test_no_disk_no_store(self):
        (self.folder / "config.toml").write_text(self.config + "[cache]\ndisk_mb = 0\n")
        receipt, _ = self.type_in()
        self.assertGreater(receipt["promptTokens"], 0)
        self.assertIsNone(self.status()["store"])
        self.assertFalse(self.store.exists())
        self.assert_fails(self.run_efimd("cache", "list"), "cache.disk_mb")

    @unittest.skipUnless(os.geteuid() == 0, "reads another process's memory")
    def test_without_a_disk_a_purge_overwrites_memory_and_what_an_earlier_daemon_kept(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        arena, = self.store.glob("*.kv")
        pages = [page[1024:1088] for page in self.pages_of(arena) if len(set(page[1024:1088])) > 24]
        self.assertGreater(len(pages), 1)
        self.run_efimd("stop")
        (self.folder / "config.toml").write_text(self.config + "[cache]\ndisk_mb = 0\n")
        self.type_in()
        pid = self.daemon_pid()
        self.assertGreater(count_in(memory_of(pid), pages), 0)
        purged = self.run_efimd("cache", "purge", self.file)
        self.assertEqual(purged.returncode, 0, purged.stderr)
        self.assertRegex(purged.stdout, "purged: [1-9]")
        self.assert_alive(pid)
        self.assertEqual(count_in(memory_of(pid), pages), 0)
        self.assertEqual(count_in([arena.read_bytes() if arena.exists() else b""], pages), 0)
        self.assert_fails(self.run_efimd("cache", "purge", self.file), "nothing of")
        self.assertEqual(self.run_efimd("cache", "purge", "--all").returncode, 0)

    def test_a_damaged_store_is_started_over_and_the_daemon_lives(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        for file in self.store.iterdir():
            file.write_bytes(os.urandom(20000))
        again, _ = self.type_in()
        self.assertEqual(again["restoredTokens"], 0)
        self.assertGreater(again["promptTokens"], 0)
        log = (self.folder / "state" / "efimd.log").read_text()
        self.assertEqual(log.count("started over"), 1, log)

    def test_a_command_waits_for_another_one_that_has_the_store(self):
        self.assertEqual(self.run_efimd("cache", "stats").returncode, 0)
        with open(self.store / "lock", "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            waiting = subprocess.Popen([kEfimd, "cache", "stats"], env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(waiting.kill)
            self.assertEqual(waiting.stderr.readline(), "efimd: waiting for another efimd, which uses the KV on disk\n")
        out, err = waiting.communicate(timeout=kPatienceS)
        self.assertEqual((waiting.returncode, err), (0, ""))
        self.assertIn("on disk", out)

    def test_pins_and_lists(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.assertIn("1 files", self.run_efimd("cache", "pin", self.file).stdout)
        self.assertIn("pinned", self.run_efimd("cache", "list").stdout)
        self.assertIn("1 files", self.run_efimd("cache", "unpin", self.file).stdout)
        self.assertNotIn("pinned", self.run_efimd("cache", "list").stdout)
        self.assertIn("1 files", self.run_efimd("cache", "pin", "/").stdout)
        self.assertIn("1 files", self.run_efimd("cache", "unpin", f"{self.folder}//").stdout)
        self.assertIn("restored", self.run_efimd("cache", "stats").stdout)
        refused = self.run_efimd("cache", "purge", "--model", "no such model")
        self.assert_fails(refused, "efimd: the store has nothing of a model no such model")
        self.assert_fails(self.run_efimd("cache", "purge"), status=2)
        name = self.status()["model"]["name"]
        self.assertEqual(self.run_efimd("cache", "purge", "--model", name).returncode, 0)
        self.assertEqual(self.stored(), 0)


if __name__ == "__main__":
    unittest.main()
