"""The commands of the CLI: what they print, and their exit status."""

import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import time
import unittest
import urllib.parse

from user import UserTest, kCursor, kEfimd, kModel, kPatienceS, kText, kUri, poll


kWholeCompletionS = 120  # what complete waits for a model; a daemon that lives answers in milliseconds


class CommandsTest(UserTest):
    model = None

    def source(self, text=kText):
        path = self.folder / "fibonacci.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def place(self):
        return f"{self.source()}:{kCursor[0] + 1}:{kCursor[1] + 1}"

    def test_complete_starts_the_daemon_and_prints_a_completion(self):
        done = self.run_efimd("complete", self.place(), "--max-tokens", 8, "--stop", "none", "--receipt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.strip())
        self.assertIn("prompt tokens", done.stderr)
        again = self.run_efimd("complete", self.place(), "--max-tokens", 8, "--stop", "none", "--json")
        answer = json.loads(again.stdout)
        self.assertEqual(answer["text"] + "\n", done.stdout)
        self.assertLessEqual(answer["receipt"]["generatedTokens"], 8)

    def test_complete_refuses_what_is_not_there(self):
        path = self.source()
        bad = self.folder / "bad.py"
        bad.write_bytes(b"x = '\xff'\n")
        self.assert_fails(self.run_efimd("complete", self.folder / "none.py:1:1"), "none.py")
        self.assert_fails(self.run_efimd("complete", f"{path}:99:1"), "no line 99", "the last is 5")
        self.assert_fails(self.run_efimd("complete", f"{path}:1:99"), "no column 99", "ends at 18")
        self.assert_fails(self.run_efimd("complete", f"{bad}:1:1"), "not UTF-8 at byte 5")
        self.assert_fails(self.run_efimd("complete", f"{self.folder}:1:1"), self.folder)
        self.assertIsNone(self.status(), "a wrong place needs no daemon")

    def test_status_of_no_daemon(self):
        for arguments in (["status"], ["status", "--json"]):
            done = self.run_efimd(*arguments)
            self.assert_fails(done, "no daemon is running")
            self.assertEqual(done.stdout, "")
        self.assertFalse(self.runtime.exists(), "status must not make anything")

    def test_status_of_a_daemon_at_work(self):
        editor = self.ready_editor()
        editor.complete_when_loaded(kUri, *kCursor)
        status = self.status()
        self.assertEqual(status["state"]["name"], "ready")
        self.assertEqual(status["model"]["path"], str(kModel))
        self.assertEqual(status["model"]["fimOrder"], "psm")
        self.assertGreater(status["memory"]["device"]["usedBytes"], 0)
        self.assertEqual([file["uri"] for file in status["files"] if file["open"]], [kUri])
        self.assertGreaterEqual(sum(event["count"] for event in status["events"].values()), 1)
        text = self.run_efimd("status").stdout
        for part in ("efim-boot", "ready", "/project/fibonacci.py", "first ms p50", "KV in"):
            self.assertIn(part, text)

    def test_model_list_marks_the_one_in_use(self):
        models = json.loads(self.run_efimd("model", "list", "--json").stdout)
        self.assertEqual([model["path"] for model in models if model["used"]], [str(kModel)])
        table = self.run_efimd("model", "list").stdout
        self.assertIn("* ", table)
        self.assertIn(f"in use: {kModel}", table)

    def test_model_use_switches_a_running_daemon_whose_editor_keeps_its_documents(self):
        other = self.folder / "other.gguf"
        other.write_bytes(kModel.read_bytes())
        editor = self.ready_editor()
        editor.change(kUri, 2, ((0, 4), (0, 13), "unsaved"), ((3, 11), (3, 20), "unsaved"))
        place = (kCursor[0], kCursor[1] - 2)
        before = editor.complete_when_loaded(kUri, *place)[0]
        pid = self.status()["pid"]
        broken = self.folder / "broken.gguf"
        broken.write_bytes(kModel.read_bytes()[:100000])
        self.assert_fails(self.run_efimd("model", "use", broken), "broken.gguf")
        self.assertEqual(self.status()["pid"], pid, "a model that cannot run changes nothing")
        self.assert_fails(self.run_efimd("model", "use", "nothing.gguf"), "no model named nothing.gguf")
        done = self.run_efimd("model", "use", other, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["path"], str(other))
        # The edits that no disk has seen are what the new model is asked about, and the next edit fits them.
        after, receipt = editor.complete_when_loaded(kUri, *place)
        self.assertEqual((after, receipt["version"]), (before, 2))
        editor.change(kUri, 3, ((0, 4), (0, 11), "fibonacci"), ((3, 11), (3, 18), "fibonacci"))
        texts = [[item["insertText"] for item in each.complete(kUri, *kCursor)[0]]
                 for each in (editor, self.ready_editor())]
        self.assertEqual(texts[0], texts[1])
        self.assertTrue(texts[0])
        self.assert_nothing_shown(editor)
        status = self.status()
        self.assertNotEqual(status["pid"], pid)
        self.assertEqual(status["model"]["path"], str(other))
        self.assertIn("efimd model use", self.run_efimd("model", "list").stdout)
        self.assertEqual(self.run_efimd("model", "use", "--configured").returncode, 0)
        self.assertIn(f"in use: {kModel}", self.run_efimd("model", "list").stdout)

    def test_model_use_takes_a_file_of_the_current_folder_and_list_says_when_it_is_gone(self):
        here = self.folder / "here"
        here.mkdir()
        mine = here / "mine.gguf"
        mine.write_bytes(kModel.read_bytes())
        done = self.run_efimd("model", "use", "mine.gguf", cwd=here)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"in use: {mine} (", done.stdout)
        self.assertIn(f"in use: {mine} (efimd model use)\n", self.run_efimd("model", "list").stdout)
        mine.unlink()
        self.assertIn(f"in use: {mine} (efimd model use) (missing)\n", self.run_efimd("model", "list").stdout)

    def test_model_info(self):
        info = json.loads(self.run_efimd("model", "info", kModel, "--json").stdout)
        self.assertEqual(info["architecture"], "llama")
        self.assertEqual(info["fim"]["order"], "psm")
        self.assertGreater(info["kvBytesPerToken"], 0)
        self.assertEqual(info["recognized"], "llama: RMS norm, SiLU gate")
        self.assertEqual(info["activeParameters"], info["parameters"])
        self.assertEqual(sum(group["bytes"] for group in info["tensors"]), info["weightBytes"])
        self.assertIn({"type": "Q8_0", "tensors": 11, "bytes": 765952},
                      next(group for group in info["tensors"] if group["name"] == "attn_k")["types"])
        speed = next(each for each in info["expectedSpeed"] if each["kind"] == "cpu")
        self.assertGreater(speed["promptTokensPerS"], 0)
        self.assertGreater(speed["generationTokensPerS"], 0)
        text = self.run_efimd("model", "info").stdout
        for part in (info["name"], info["digest"], "KV per token", "metadata", "11 Q8_0", "Expected speed"):
            self.assertIn(part, text)
        self.assertNotIn("Expected speed", self.run_efimd("model", "info", "--no-speed").stdout)
        listed = self.run_efimd("model", "info", kModel.name, "--no-speed", cwd=self.folder)
        self.assertIn(str(kModel), listed.stdout, listed.stderr)
        self.assert_fails(self.run_efimd("model", "info", "nonsense"), "no model named nonsense", "efimd model list")
        unmeasured = json.loads(self.run_efimd("model", "info", kModel, "--no-speed", "--json").stdout)
        self.assertEqual(unmeasured, info | {"expectedSpeed": None})

    def test_doctor_of_a_healthy_machine(self):
        done = self.run_efimd("doctor")
        self.assertEqual(done.returncode, 0, done.stdout)
        for part in ("processor", "memory", "socket", "configuration", "model", "daemon"):
            self.assertIn(part, done.stdout)
        self.ready_editor()
        self.assertIn(str(self.daemon_pid()), self.run_efimd("doctor").stdout)

    def test_doctor_says_why_a_file_is_treated_as_secret(self):
        for name, why in ((".env", "may hold secrets (.env)"), ("a.py", "may be kept"), ("missing.py", "is not there")):
            (self.folder / ".env").write_text("A=1\n")
            (self.folder / "a.py").write_text("a = 1\n")
            done = self.run_efimd("doctor", self.folder / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(why, done.stdout)

    def test_doctor_says_of_a_file_what_complete_says_of_it(self):
        bad, large = self.folder / "bad.py", self.folder / "large.py"
        bad.write_bytes(b"x = '\xff'\n")
        large.write_bytes(b"x = 1\n")
        os.truncate(large, 70 * 2**20)
        for path, why in ((bad, "not UTF-8 at byte 5"), (large, "larger than 64 MiB"), (self.folder, self.folder)):
            done = self.run_efimd("doctor", path)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertTrue(done.stdout.startswith("wrong  completion"), done.stdout)
            self.assertIn(str(why), done.stdout)
            self.assertNotIn("good", done.stdout)
            self.assert_fails(self.run_efimd("complete", f"{path}:1:1"), why)

    def test_doctor_finds_a_wrong_configuration(self):
        (self.folder / "config.toml").write_text("[completion]\nmax_tokens = 7\nmagic = true\n")
        done = self.run_efimd("doctor", "--json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        wrong = [finding for finding in report["findings"] if finding["level"] == "wrong"]
        self.assertEqual([finding["subject"] for finding in wrong], ["configuration"])
        self.assertIn("magic", wrong[0]["what"])
        self.assertIn(":3:", wrong[0]["what"])

    def test_stop(self):
        # Behind an answer the bridge has nothing more to say, which would bring a daemon back.
        self.ready_editor().complete_when_loaded(kUri, *kCursor)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertIsNone(self.status())
        self.assertFalse((self.runtime / "daemon.sock").exists())
        self.assertEqual(self.run_efimd("stop").stdout, "no daemon is running\n")

    def running_daemon(self):
        """The pid of one that no editor brings back."""
        self.run_efimd("complete", self.place())
        return self.daemon_pid()

    def test_a_daemon_whose_socket_was_removed_is_reported_and_stopped(self):
        pid = self.running_daemon()
        (self.runtime / "daemon.sock").unlink()
        for command in ("status", "doctor"):
            done = self.run_efimd(command)
            self.assertEqual(done.returncode, 1)
            for part in (f"process {pid} holds", "does not listen", "'efimd stop' ends it"):
                self.assertIn(part, done.stdout + done.stderr)
        done = self.run_efimd("stop")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "the daemon has finished\n", ""))
        self.assert_fails(self.run_efimd("status"), "no daemon is running")

    def test_commands_say_that_the_daemon_does_not_answer(self):
        pid = self.running_daemon()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        for arguments in (["complete", self.place()], ["cache", "list"], ["cache", "purge", "--all"]):
            begun = time.monotonic()
            self.assert_fails(self.run_efimd(*arguments), "did not answer in time; end it with 'efimd stop'")
            self.assertLess(time.monotonic() - begun, kWholeCompletionS, "it was waited for as a model, or all of the store, is")

    def test_a_daemon_that_does_not_answer_is_stopped_by_a_signal(self):
        pid = self.running_daemon()
        os.kill(pid, signal.SIGSTOP)
        stop = subprocess.Popen([kEfimd, "stop"], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(stop.stdout.close)
        self.addCleanup(stop.kill)
        status = pathlib.Path(f"/proc/{pid}/status")

        def has_the_signal():
            self.assertIsNone(stop.poll(), "it gave up")
            pending = next(line for line in status.read_text().splitlines() if line.startswith("ShdPnd:"))
            return int(pending.split()[1], 16) >> (signal.SIGTERM - 1) & 1

        poll(has_the_signal, "the daemon is sent SIGTERM")
        os.kill(pid, signal.SIGCONT)
        self.assertEqual((stop.wait(kPatienceS), stop.stdout.read()), (0, "the daemon has finished\n"))

    def test_serve_refuses_a_second_daemon(self):
        self.ready_editor()
        self.assert_fails(self.run_efimd("serve"), str(self.daemon_pid()))

    def test_serve_ends_well_when_it_is_stopped(self):
        serving = subprocess.Popen([kEfimd, "serve"], env=self.environment, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(serving.stderr.close)
        self.addCleanup(serving.kill)
        for line in serving.stderr:
            if " listens at " in line:
                break
        self.assertEqual(self.daemon_pid(), serving.pid)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertEqual(serving.wait(kPatienceS), 0)

    def test_a_daemon_that_cannot_start_is_quoted(self):
        self.runtime.mkdir(0o700)
        (self.runtime / "daemon.lock").mkdir()
        self.assert_fails(self.run_efimd("complete", self.place()), "daemon.lock")

    def test_closed_standard_streams_are_no_trouble(self):
        done = subprocess.run(["sh", "-c", '"$0" complete "$1" <&- >&- 2>&-', kEfimd, self.place()],
                              env=self.environment, timeout=kPatienceS, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.status()["state"]["name"], "ready")

    def test_wrong_usage_is_2(self):
        for arguments in ([], ["frobnicate"], ["status", "--wrong"], ["complete"], ["complete", "a.py"],
                          ["complete", "a.py:0:1"], ["complete", self.place(), "--stop", "word"],
                          ["model"], ["model", "info", "a", "b"], ["model", "use"], ["stop", "now"]):
            with self.subTest(arguments=arguments):
                done = self.run_efimd(*arguments)
                self.assert_fails(done, status=2)
                self.assertTrue(done.stderr.strip())
                self.assertEqual(done.stdout, "")

    def test_no_name_of_a_model_or_a_file_reaches_the_terminal_or_the_log_as_an_order_to_it(self):
        orders = "\x1b]0;owned\x07\n\x9b"  # a title, a bell, a line of one's own, an order of one character
        model = self.folder / f"{orders}.gguf"
        key = struct.pack("<Q", 12) + b"general.name" + struct.pack("<I", 8)
        before, after = kModel.read_bytes().split(key, 1)
        size = struct.unpack("<Q", after[:8])[0]
        model.write_bytes(before + key + struct.pack("<Q", size) + orders.encode()[:size].ljust(size) + after[8 + size:])
        self.environment["EFIMD_MODEL"] = str(model)
        path = self.folder / f"a{orders}.py"
        path.write_text(kText)
        editor = self.editor()
        editor.initialize()
        editor.open(f"file://{urllib.parse.quote(str(path))}", kText)
        editor.complete_when_loaded(f"file://{urllib.parse.quote(str(path))}", *kCursor)
        for arguments in (["status"], ["status", "--why"], ["model", "info", model], ["model", "list"], ["doctor"],
                          ["doctor", path], ["cache", "list"], ["cache", "pin", path], ["complete", f"{path}:99:1"],
                          ["complete", path], ["model", "use", model], ["model", "use", f"{model}x"], ["cache", "purge", path]):
            done = self.run_efimd(*arguments)
            for character in "\x1b\x07\x9b":
                self.assertNotIn(character, done.stdout + done.stderr, arguments)
        log = (self.folder / "state" / "efimd.log").read_text()
        self.assertIn("owned", log)
        self.assertTrue(all(character.isprintable() for character in log.replace("\n", "")))
        self.assertTrue(all(line[:4].isdigit() for line in log.splitlines()), "a line that efimd did not begin")

    def into(self, output, *arguments, program=kEfimd):
        """A finished command whose stdout is this file."""
        done = subprocess.run([program, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.PIPE, text=True, timeout=kPatienceS, check=False)
        done.stdout = ""
        return done

    def much_for_doctor(self):
        """More than is written at once."""
        (self.folder / "config.toml").write_text("".join(f"unknown_key_{i} = 1\n" for i in range(200)))
        self.assertGreater(len(self.run_efimd("doctor", "--json").stdout), 8192)

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.ready_editor().ask("efim/version", None)
        for arguments in (["status", "--json"], ["status", "--watch"], ["--version"], ["help"], ["model", "list"]):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                self.assert_fails(self.into(full, *arguments), "the output cannot be written")
        self.much_for_doctor()
        with open("/dev/full", "wb") as full:
            self.assert_fails(self.into(full, "doctor", "--json"), "the output cannot be written")
        for name in ("efimd-http", "efimd-get"):
            with self.subTest(program=name), open("/dev/full", "wb") as full:
                beside = pathlib.Path(kEfimd).with_name(name)
                self.assert_fails(self.into(full, "--version", program=beside), "the output cannot be written")

    def test_a_reader_that_leaves_early_is_no_failure(self):
        def into_nobody(*arguments):
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, "wb") as nobody:
                return self.into(nobody, *arguments)

        for arguments in (["--version"], ["help"], ["model", "list"]):
            with self.subTest(arguments=arguments):
                done = into_nobody(*arguments)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.much_for_doctor()
        self.assertNotIn("cannot", into_nobody("doctor", "--json").stderr)

    def test_lsp_in_a_terminal_says_whom_it_is_for(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        os.write(ours, b"hello\n")
        done = subprocess.run([kEfimd, "lsp"], env=self.environment, stdin=theirs, capture_output=True, text=True,
                              timeout=kPatienceS, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "efimd lsp is for editors.*\n.*a line without a colon")

    def test_what_is_wrong_stands_above_where_it_is_said(self):
        (self.folder / "config.toml").write_text("unknown_key = 1\n")
        done = subprocess.run([kEfimd, "doctor"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=kPatienceS, check=False)
        self.assertEqual(done.stdout.splitlines()[-1], "efimd: something is wrong, see above")

    def test_doctor_notes_a_named_configuration_that_is_not_there(self):
        finding = r"note +configuration +.*none\.toml \(EFIMD_CONFIG\) is not there: defaults apply"
        self.assertRegex(self.run_efimd("doctor", EFIMD_CONFIG=self.folder / "none.toml").stdout, finding)
        (self.folder / "config.toml").write_text("")
        self.assertRegex(self.run_efimd("doctor").stdout, r"good +configuration +.*config\.toml\n")

    def test_help_and_version_are_0(self):
        for arguments in (["--help"], ["help"], ["--version"], ["lsp", "--help"], ["help", "model", "info"]):
            done = self.run_efimd(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("efimd", done.stdout)


if __name__ == "__main__":
    unittest.main()
