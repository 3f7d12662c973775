"""Where the socket lives: without $XDG_RUNTIME_DIR, in a folder open to others, in one that is not ours to use. And workspace folders."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import unittest

from lsp_peer import LspError
from user import UserTest, kCursor, kPatienceS, kText, kUri, poll


class RuntimeFolderTest(UserTest):
    def doctor(self):
        return json.loads(self.run_efimd("doctor", "--json").stdout)["findings"]

    def without_runtime_dir(self):
        """EFIMD_RUNTIME_DIR and XDG_RUNTIME_DIR unset, a temporary folder of our own."""
        del self.environment["EFIMD_RUNTIME_DIR"]
        self.environment["TMPDIR"] = str(self.folder)

    def test_no_xdg_runtime_dir_is_noted(self):
        self.without_runtime_dir()
        notes = [finding["what"] for finding in self.doctor() if finding["level"] == "note"]
        self.assertEqual(len(notes), 1)
        self.assertIn("XDG_RUNTIME_DIR", notes[0])

    @unittest.skipIf(pathlib.Path(f"/run/user/{os.getuid()}").exists(),
                     "this user's own /run/user folder would be used")
    def test_no_xdg_runtime_dir_uses_a_private_temporary_folder(self):
        self.without_runtime_dir()
        self.runtime = self.folder / f"efimd-{os.getuid()}"
        editor = self.ready_editor()
        self.assertTrue(editor.complete_when_loaded(kUri, *kCursor)[0])
        self.assertEqual(stat.S_IMODE(self.runtime.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((self.runtime / "daemon.sock").stat().st_mode), 0o600)

    def test_xdg_runtime_dir_is_used(self):
        del self.environment["EFIMD_RUNTIME_DIR"]
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder)
        self.runtime = self.folder / "efimd"
        self.ready_editor()
        self.assertIsNotNone(self.status())
        self.assertEqual(stat.S_IMODE(self.runtime.stat().st_mode), 0o700)

    def assert_refused(self, *parts):
        """By everything that would use the folder, each with the reason and what to do."""
        editor = self.editor()
        with self.assertRaises(LspError) as raised:
            editor.initialize()
        for part in (self.runtime, *parts):
            self.assertIn(str(part), raised.exception.message)
        source = self.folder / "a.py"
        source.write_text(kText)
        for command in (["serve"], ["complete", f"{source}:1:1"]):
            self.assert_fails(self.run_efimd(*command), self.runtime, *parts)
        doctor = self.run_efimd("doctor")
        self.assertEqual(doctor.returncode, 1)
        self.assertIn(parts[0], doctor.stdout)

    def test_a_folder_open_to_others(self):
        self.runtime.mkdir(0o755)
        self.runtime.chmod(0o755)
        self.assert_refused("open to other users", "chmod 700", "EFIMD_RUNTIME_DIR")
        self.assertEqual(stat.S_IMODE(self.runtime.stat().st_mode), 0o755)
        self.runtime.chmod(0o700)
        self.ready_editor()

    def test_a_symbolic_link(self):
        (self.folder / "real").mkdir(0o700)
        self.runtime.symlink_to(self.folder / "real")
        self.assert_refused("symbolic link", "EFIMD_RUNTIME_DIR")

    def test_a_file_in_its_place(self):
        self.runtime.write_text("")
        self.assert_refused("not a folder", "EFIMD_RUNTIME_DIR")

    def test_a_name_too_long_for_a_socket(self):
        done = self.run_efimd("status", EFIMD_RUNTIME_DIR=str(self.folder / ("a" * 120)))
        self.assert_fails(done, "EFIMD_RUNTIME_DIR")

    @unittest.skipIf(os.getuid() != 0, "a folder is mounted read-only by root only")
    def test_folders_that_cannot_be_made_are_found_before_they_are_needed(self):
        closed = self.folder / "closed"
        closed.mkdir()
        for name in ("RUNTIME", "STATE", "CACHE"):
            self.environment[f"EFIMD_{name}_DIR"] = str(closed / "efimd" / name.lower())
        mounted = f"mount --bind {closed} {closed} && mount -o remount,ro,bind {closed} && exec \"$@\""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", mounted, "sh", os.environ["EFIMD_BINARY"], "doctor", "--json"], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kPatienceS, check=False)
        wrong = {found["subject"]: found for found in json.loads(done.stdout)["findings"] if found["level"] == "wrong"}
        self.assertEqual(set(wrong), {"socket", "cache", "log"})
        for found in wrong.values():
            self.assertIn("Read-only file system", found["what"])
            self.assertIn("permissions", found["remedy"])

    @unittest.skipIf(os.getuid() != 0, "a folder is mounted read-only by root only")
    def test_a_daemon_that_cannot_keep_kv_says_why(self):
        closed = self.folder / "closed"
        closed.mkdir()
        self.environment["EFIMD_CACHE_DIR"] = str(closed / "cache")
        source = self.folder / "a.py"
        source.write_text(kText)
        program = os.environ["EFIMD_BINARY"]
        asked = f"{program} complete {source}:1:1; {program} status; {program} doctor; {program} stop"
        mounted = f"mount --bind {closed} {closed} && mount -o remount,ro,bind {closed} && {{ {asked}; }}"
        done = subprocess.run(["unshare", "--mount", "sh", "-c", mounted], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=kPatienceS, check=False)
        said = f"nothing is kept on disk: {closed}/cache: cannot be made: Read-only file system"
        self.assertIn(f"\n{said}", done.stdout)
        self.assertRegex(done.stdout, f"wrong  daemon +process [0-9]+: {said}")

    @unittest.skipIf(os.getuid() != 0, "a file system is mounted by root only")
    def test_folders_without_room_are_found_before_they_are_needed(self):
        filled = self.folder / "filled"
        filled.mkdir()
        tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", filled], capture_output=True, text=True, timeout=kPatienceS, check=False)
        if tried.returncode != 0:
            self.skipTest("no file system may be mounted here: " + tried.stderr.strip())
        for name in ("RUNTIME", "STATE", "CACHE"):
            self.environment[f"EFIMD_{name}_DIR"] = str(filled / name.lower())
        for made in ("", f"mkdir -m 700 {filled}/runtime {filled}/state {filled}/cache && "):
            # Room for folders, none for what is in them; and files up to a limit.
            for options, fill in (("size=8k", f"cat /dev/zero >{filled}/zeros; "), ("nr_inodes=5", f"touch {filled}/1 {filled}/2 {filled}/3 {filled}/4; ")):
                mounted = f"mount -t tmpfs -o {options} none {filled} && {made}{{ {fill} exec \"$@\"; }}"
                done = subprocess.run(["unshare", "--mount", "sh", "-c", mounted, "sh", os.environ["EFIMD_BINARY"], "doctor", "--json"],
                                      env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kPatienceS, check=False)
                found = {each["subject"]: each for each in json.loads(done.stdout)["findings"]}
                self.assertEqual([found[subject]["level"] for subject in ("socket", "cache", "log")], ["wrong", "note", "note"], done.stderr)
                self.assertIn("no space is left", found["socket"]["what"])
                self.assertIn("make room", found["socket"]["remedy"])

    def test_doctor_says_which_folders_others_could_open(self):
        folders = [pathlib.Path(self.environment[f"EFIMD_{name}_DIR"]) for name in ("CACHE", "STATE")]
        for mode, level, said in ((0o700, "good", ""), (0o750, "note", " is open to other users"), (0o707, "wrong", " can be written by other users")):
            for folder in folders:
                folder.mkdir(exist_ok=True)
                folder.chmod(mode)
            found = {each["subject"]: each for each in self.doctor()}
            for subject, folder in zip(("cache", "log"), folders):
                self.assertEqual((found[subject]["level"], found[subject]["what"]), (level, f"{folder}{said}"))
                self.assertEqual(found[subject]["remedy"], f"chmod 700 {folder}" if said else "")

    def test_relative_paths_mean_the_same_to_the_daemon(self):
        self.environment["EFIMD_RUNTIME_DIR"] = os.path.relpath(self.runtime)
        self.environment["EFIMD_STATE_DIR"] = os.path.relpath(self.folder / "state")
        self.ready_editor()
        self.assertTrue((self.runtime / "daemon.sock").exists())
        self.assertIn(str(self.runtime), (self.folder / "state" / "efimd.log").read_text())

    @unittest.skipIf(os.getuid() != 0, "only root can become another user")
    def test_another_user_is_not_served(self):
        """Even where the folder and the socket were opened to everyone behind the daemon's back."""
        self.ready_editor().complete_when_loaded(kUri, *kCursor)
        for path in (self.folder, *self.folder.parents[:-1], self.runtime):
            if not path.stat().st_mode & stat.S_IXOTH:
                self.addCleanup(path.chmod, stat.S_IMODE(path.stat().st_mode))
                path.chmod(0o755)
        (self.runtime / "daemon.sock").chmod(0o666)
        asked = subprocess.run(
            [sys.executable, "-c", kAskAsNobody, str(self.runtime / "daemon.sock")],
            capture_output=True, text=True, timeout=kPatienceS, check=False)
        self.assertEqual((asked.stdout, asked.stderr), ("closed\n", ""))
        self.assertIsNotNone(self.status())


class WorkspaceFolderTest(UserTest):
    def test_a_folder_that_is_removed_leaves_recall(self):
        projects = [self.folder / "one", self.folder / "two"]
        editor = self.editor()
        editor.initialize()
        self.change_folders(editor, added=projects)
        for project in projects:
            project.mkdir()
            (project / "other.py").write_text("def other():\n    return 1\n")
            (project / "a.py").write_text(kText)
            editor.open((project / "a.py").as_uri(), kText)
        poll(lambda: len(self.recall()["folders"]) == 2 and self.recall()["files"] == 4, "both are read")
        self.change_folders(editor, removed=projects[:1])
        poll(lambda: [row["project"] for row in self.recall()["folders"]] == [str(projects[1])], "one of them is left")
        poll(lambda: self.recall()["files"] == 2, "its text is gone")

    def test_a_folder_stays_as_long_as_another_editor_has_it(self):
        project = self.folder / "one"
        project.mkdir()
        (project / "a.py").write_text(kText)
        editors = [self.editor(), self.editor()]
        for editor in editors:
            editor.initialize()
            self.change_folders(editor, added=[project])
        editors[0].open((project / "a.py").as_uri(), kText)
        poll(lambda: self.recall()["files"] == 1, "it is read")
        for editor, left in zip(editors, (1, 0)):
            self.change_folders(editor, removed=[project])
            editor.ask("efim/version", None)  # what was sent before is done
            poll(lambda: len(self.recall()["folders"]) == left, f"{left} are left")
            poll(lambda: self.recall()["files"] == left, "the index has as many")

    def recall(self):
        return self.status()["recall"]

    def change_folders(self, editor, **changed):
        event = {kind: [{"uri": project.as_uri(), "name": project.name} for project in changed.get(kind, [])] for kind in ("added", "removed")}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})


kAskAsNobody = """
import os, socket, sys
os.setuid(65534)
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
body = b'{"jsonrpc":"2.0","id":1,"method":"efim/status"}'
try:
    peer.sendall(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    print(peer.recv(100) or "closed")
except (BrokenPipeError, ConnectionResetError):
    print("closed")
"""


if __name__ == "__main__":
    unittest.main()
