"""Budgets, folders, clocks and file systems other than one hopes for: the cache suffers, nothing else does."""

import json
import os
import shutil
import sqlite3
import unittest

from cache_user import CacheUser, poll


class CacheLimitsTest(CacheUser):
    def configure(self, cache):
        (self.folder / "config.toml").write_text(self.config + "[cache]\n" + cache + "\n")

    def log(self):
        return (self.folder / "state" / "efimd.log").read_text()

    def stored_and_stopped(self):
        cold, suggested = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        return cold, suggested

    def test_a_disk_budget_below_a_page_keeps_nothing_and_says_so_once(self):
        self.configure("disk_mb = 1")
        receipt, suggested = self.type_in()
        self.assertGreater(receipt["promptTokens"], 0)
        poll(lambda: "no room" in self.status()["store"]["trouble"], "the budget's message")
        self.assertEqual(self.stored(), 0)
        again, same = self.type_in()
        self.assertEqual((again["restoredTokens"], same), (0, suggested))
        self.assertEqual(self.log().count("no room"), 1, self.log())

    def test_a_disk_budget_larger_than_any_disk_is_bounded_by_what_is_free(self):
        self.configure("disk_mb = 16777216")
        cold, _ = self.stored_and_stopped()
        warm, _ = self.type_in()
        self.check_restored(cold, warm)
        self.assertEqual(self.status()["store"]["trouble"], "")

    def test_a_memory_budget_out_of_bounds_is_reported_and_its_default_used(self):
        for memory in ("0", "-1", "99999999"):
            self.configure(f"memory_mb = {memory}")
            self.assertIn("cache.memory_mb", self.run_efimd("doctor").stdout)
        receipt, _ = self.type_in()
        self.assertGreater(receipt["promptTokens"], 0)

    def test_a_cache_folder_that_is_deleted_under_the_daemon_is_made_anew(self):
        cold, suggested = self.type_in()
        self.wait_until_stored(cold)
        pid = self.daemon_pid()
        shutil.rmtree(self.folder / "cache")
        other = (self.folder / "other.py").as_uri()
        receipt, _ = self.type_in(other, self.text.replace("def ", "def  "))
        poll(lambda: self.stored(other) >= receipt["promptTokens"] // 32 * 32, "the other file's pages are on disk")
        self.assertTrue((self.store / "store.db").exists())
        self.assertEqual(self.type_in()[1], suggested)
        self.assert_alive(pid)
        self.assertEqual(self.log().count("files that the store had open are gone"), 1, self.log())
        self.run_efimd("stop")
        warm, _ = self.type_in(other, self.text.replace("def ", "def  "))
        self.check_restored(receipt, warm)

    def test_kv_of_a_file_that_is_gone_can_be_purged_and_serves_its_text_elsewhere(self):
        cold, _ = self.stored_and_stopped()
        self.file.unlink()
        warm, _ = self.type_in()  # an editor that has it open still
        self.check_restored(cold, warm)
        purged = self.run_efimd("cache", "purge", self.file)
        self.assertEqual(purged.returncode, 0, purged.stderr)
        self.assertEqual(self.stored(), 0)

    def test_times_of_another_clock_lose_nothing(self):
        for seconds in (-2**63, -1, 1, 2**40, 2**63 - 1):
            cold, _ = self.stored_and_stopped()
            self.assertEqual(self.run_efimd("cache", "pin", self.file).returncode, 0)
            with sqlite3.connect(self.store / "store.db") as database:
                database.execute("UPDATE sources SET used_at_s = ?, last_use = ?", (seconds, seconds))
                database.execute("UPDATE pages SET last_use = ?", (seconds,))
                database.execute("UPDATE counters SET value = ?", (seconds,))
            database.close()
            listed = self.run_efimd("cache", "list")
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertIn("code.py", listed.stdout)
            self.assertIn("pinned", listed.stdout)
            self.assertEqual(self.run_efimd("cache", "verify").returncode, 0)
            warm, _ = self.type_in()
            self.check_restored(cold, warm)
            self.assertEqual(self.status()["store"]["trouble"], "")
            self.run_efimd("stop")

    def test_a_file_system_without_locks_keeps_kv_all_the_same_and_says_so(self):
        self.environment["LD_PRELOAD"] = os.environ["EFIMD_NO_LOCKS"]
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        log = self.log()
        self.assertEqual(log.count("this file system has no locks"), 1, log)
        self.assertEqual(log.count("no locks for SQLite"), 1, log)
        self.run_efimd("stop")
        warm, _ = self.type_in()
        self.check_restored(cold, warm)
        done = self.run_efimd("cache", "list", "--json")
        self.assertEqual(json.loads(done.stdout)["files"][0]["uri"], self.uri)


if __name__ == "__main__":
    unittest.main()
