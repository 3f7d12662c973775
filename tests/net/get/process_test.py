#!/usr/bin/env python3
"""efimd model get against a hub of the tests' own: what it loads, where it puts it, and every way in which a network lets it down."""

import contextlib
import hashlib
import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import threading
import unittest

import hub_server
from get_case import GetTest, kEfimd, kModel, kName, kFile, kPatienceS
from hub_server import Repository, kCommit


class TheLayout(GetTest):
    def test_a_model_lies_where_the_hubs_own_programs_look_for_it(self):
        path = self.get()
        digest = hashlib.sha256(kModel).hexdigest()
        self.assertEqual(path, self.folder / "snapshots" / kCommit / kFile)
        self.assertEqual(os.readlink(path), f"../../blobs/{digest}")
        self.assertEqual(path.read_bytes(), kModel)
        self.assertEqual((self.folder / "refs/main").read_text(), kCommit)
        self.assertEqual(self.left(), [digest])
        self.assertTrue((self.cache / ".locks" / self.folder.name / f"{digest}.lock").exists())

    def test_a_file_in_a_folder_is_linked_by_a_relative_path(self):
        self.repository.files = {f"q8/{kFile}": kModel}
        path = self.get()
        self.assertEqual(path, self.folder / "snapshots" / kCommit / "q8" / kFile)
        self.assertTrue(os.readlink(path).startswith("../../../blobs/"))
        self.assertEqual(path.read_bytes(), kModel)

    def test_content_outside_lfs_is_named_and_checked_as_git_does(self):
        self.repository.lfs = False
        self.get()
        self.assertEqual(self.left(), [hub_server.git_id(kModel)])
        self.hub.faults.append(hub_server.wrong_bytes)
        self.repository.files[kFile] = kModel + b"\0"
        self.assertIn("wrong checksum", self.run_get().stderr)

    def test_the_folder_follows_the_hubs_variables(self):
        for variables, folder in [({"HF_HUB_CACHE": self.home / "a", "HF_HOME": self.home / "x"}, "a"),
                                  ({"HUGGINGFACE_HUB_CACHE": self.home / "b"}, "b"),
                                  ({"HF_HOME": self.home / "c", "LLAMA_CACHE": self.home / "x"}, "c/hub"),
                                  ({"LLAMA_CACHE": self.home / "d"}, "d")]:
            path = self.get(kName, **{name: str(value) for name, value in variables.items()})
            self.assertTrue(path.is_relative_to(self.home / folder), path)

    def test_what_was_loaded_is_listed_and_can_be_used_by_its_name(self):
        self.hub.repositories["ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF"] = Repository({"qwen2.5-coder-0.5b-q8_0.gguf": kModel})
        path = self.get("qwen2.5-coder-0.5b", "--use")
        listed = subprocess.run([kEfimd, "model", "list", "--json"], env=self.environment, capture_output=True, text=True,
                                check=True, timeout=kPatienceS)
        model, = (each for each in json.loads(listed.stdout) if each["used"])
        self.assertEqual([model["name"], model["origin"]], ["qwen2.5-coder-0.5b-q8_0.gguf", "Hugging Face"])
        self.assertIn(model["path"], str(path))
        used = subprocess.run([kEfimd, "model", "use", "qwen2.5-coder-0.5b"], env=self.environment, capture_output=True,
                              text=True, check=True, timeout=kPatienceS)
        self.assertIn(model["path"], used.stdout)

    def test_of_two_states_of_a_repository_the_current_one_is_listed(self):
        self.get()
        self.repository.files[kFile] = kModel + b"\0" * 32
        self.repository.commit = "f" * 40
        path = self.get()
        listed = subprocess.run([kEfimd, "model", "list", "--json"], env=self.environment, capture_output=True, text=True,
                                check=True, timeout=kPatienceS)
        ours = [each["path"] for each in json.loads(listed.stdout) if each["origin"] == "Hugging Face"]
        self.assertEqual(ours, [str(path)])


class TheChoice(GetTest):
    def setUp(self):
        super().setUp()
        self.repository.files = {f"coder-{type}.gguf": kModel + bytes(32 * number) for number, type in
                                 enumerate(["Q2_K", "Q4_K_S", "Q4_K_M", "Q8_0"], 1)} | {"mmproj-Q5_0.gguf": kModel}

    def test_the_usual_type_is_taken_or_the_one_that_is_named(self):
        for name, file in [(kName, "coder-Q4_K_M.gguf"), (f"{kName}:q2_k", "coder-Q2_K.gguf"),
                           (f"hf.co/{kName}:Q8_0", "coder-Q8_0.gguf"), (f"{kName}:coder-Q4_K_S.gguf", "coder-Q4_K_S.gguf"),
                           (f"{self.hub.endpoint}/{kName}/blob/main/coder-Q2_K.gguf", "coder-Q2_K.gguf"),
                           (f"https://huggingface.co/{kName}/resolve/{kCommit}/coder-Q8_0.gguf?download=true",
                            "coder-Q8_0.gguf")]:
            with self.subTest(name):
                self.assertEqual(self.get(name).name, file)

    def test_a_type_that_is_not_there_is_answered_with_those_that_are(self):
        for type in ("Q5_0", "Q4_K"):
            said = self.refused(f"{kName}:{type}")
            self.assertIn(f"has no {type}", said)
            self.assertIn("coder-Q2_K.gguf, coder-Q4_K_S.gguf, coder-Q4_K_M.gguf, coder-Q8_0.gguf", said)
            self.assertNotIn("mmproj", said)

    def test_names_that_are_none_are_refused_before_anything_is_asked(self):
        for name in ("../x", "a/..", "a/b:../c.gguf", "nothing", "http:///x.gguf", "ftp://a/b.gguf", "a/b:", "https://a/b.bin",
                     f"{self.hub.endpoint}/{kName}/resolve/main/../../x.gguf"):
            with self.subTest(name):
                self.assertTrue(self.refused(name))
        self.assertEqual(self.hub.requests, [])

    def test_names_of_the_hub_that_lead_elsewhere_are_not_files(self):
        self.repository.files = {"../../../outside.gguf": kModel, "/etc/x.gguf": kModel}
        self.assertIn("has no GGUF file", self.refused())

    def test_of_a_split_model_all_parts_are_loaded(self):
        names = [f"big-Q8_0-{part:05}-of-00002.gguf" for part in (1, 2)]
        self.repository.files = {names[1]: kModel + bytes(32), names[0]: kModel}
        done = self.run_get()
        self.assertIn("llama-gguf-split --merge", done.stderr)
        path = pathlib.Path(done.stdout.strip())
        self.assertEqual(path.name, names[0])
        self.assertEqual((path.parent / names[1]).read_bytes(), kModel + bytes(32))
        listed = subprocess.run([kEfimd, "model", "list", "--json"], env=self.environment, capture_output=True, text=True,
                                check=True, timeout=kPatienceS)
        model, = (each for each in json.loads(listed.stdout) if each["origin"] == "Hugging Face")
        self.assertEqual((model["parts"], model["bytes"]), (2, 2 * len(kModel) + 32))

    def test_a_split_model_without_a_part_is_refused(self):
        self.repository.files = {"big-Q8_0-00001-of-00002.gguf": kModel}
        self.assertIn("has no big-Q8_0-00002-of-00002.gguf", self.refused())


class TheNetwork(GetTest):
    def test_a_second_get_asks_for_no_content(self):
        first = self.get()
        self.hub.requests.clear()
        self.assertEqual(self.get(), first)
        self.assertEqual(self.hub.asked_for_content(), [])

    def test_a_connection_that_breaks_goes_on_where_it_broke(self):
        self.hub.faults += [hub_server.cut_off_after(1_000_000), hub_server.cut_off_after(3_000_000)]
        self.assertEqual(self.get().read_bytes(), kModel)
        asked = [request.range for request in self.hub.asked_for_content()]
        self.assertEqual(asked[0], None)
        self.assertEqual(len(asked), 3)
        begins = [int(each.removeprefix("bytes=").rstrip("-")) for each in asked[1:]]
        self.assertLess(0, begins[0])
        self.assertLess(begins[0], begins[1])

    def test_a_connection_that_never_holds_is_given_up_and_what_came_is_kept(self):
        self.hub.faults += [hub_server.cut_off_after(2_000_000)] + [hub_server.cut_off_after(0)] * 5
        said = self.refused()
        self.assertIn("are kept", said)
        self.assertIn("trying again", said)
        self.hub.faults.clear()
        self.hub.requests.clear()
        self.assertEqual(self.get().read_bytes(), kModel)
        self.assertIsNotNone(self.hub.asked_for_content()[0].range)

    def test_a_silent_server_counts_as_broken(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.hub.faults.append(hub_server.silent_after(500_000, gate))
        self.assertEqual(self.get(kName, HF_HUB_DOWNLOAD_TIMEOUT="1").read_bytes(), kModel)

    def test_a_server_without_ranges_is_asked_from_the_beginning(self):
        self.hub.ranges = False
        self.hub.faults.append(hub_server.cut_off_after(1_000_000))
        self.assertEqual(self.get().read_bytes(), kModel)

    def test_another_part_than_asked_for_is_refused(self):
        self.hub.faults += [hub_server.cut_off_after(1_000_000), hub_server.another_part]
        self.assertIn("another part", self.refused())
        self.assertEqual(self.left(), [])

    def test_wrong_bytes_are_removed(self):
        self.hub.faults.append(hub_server.wrong_bytes)
        self.assertIn("wrong checksum", self.refused())
        self.assertEqual(self.left(), [])
        self.assertEqual(self.get().read_bytes(), kModel)

    def test_wrong_bytes_of_an_earlier_try_are_loaded_anew(self):
        blob = self.folder / "blobs" / (hashlib.sha256(kModel).hexdigest() + ".incomplete")
        blob.parent.mkdir(parents=True)
        blob.write_bytes(b"\0" * 1000)
        self.assertEqual(self.get().read_bytes(), kModel)
        self.assertEqual([request.range for request in self.hub.asked_for_content()], ["bytes=1000-", None])

    def test_more_than_the_hub_said_is_refused(self):
        self.hub.faults.append(hub_server.too_long)
        self.assertIn("more than it said", self.refused())
        self.assertEqual(self.left(), [])

    def test_a_whole_file_that_is_no_model_is_removed(self):
        for content in (b"not a model" * 1000, kModel[:100_000]):
            self.repository.files[kFile] = content
            self.assertIn("no whole GGUF file", self.refused())
            self.assertEqual(self.left(), [])

    def test_an_overloaded_server_is_obeyed_within_bounds(self):
        self.hub.faults += [hub_server.status(429, Retry_After="0"), hub_server.status(503, Retry_After="0")]
        self.hub.api_faults.append(hub_server.status(429, Retry_After="0"))
        self.assertEqual(self.get().read_bytes(), kModel)

    def test_an_overloaded_server_that_asks_for_an_hour_is_not_waited_for(self):
        self.hub.faults.append(hub_server.status(429, Retry_After="3600"))
        said = self.refused()
        self.assertIn("too many requests", said)
        self.assertIn("1 h", said)

    def test_a_refusal_in_mid_download_keeps_what_came(self):
        self.hub.faults += [hub_server.cut_off_after(2_000_000), hub_server.status(429, Retry_After="3600")]
        self.refused()
        self.hub.requests.clear()
        self.assertEqual(self.get().read_bytes(), kModel)
        self.assertIsNotNone(self.hub.asked_for_content()[0].range)

    def test_an_address_that_ran_out_is_asked_for_again(self):
        self.hub.faults.append(hub_server.status(403))
        self.assertEqual(self.get().read_bytes(), kModel)

    def test_redirects_without_end_and_to_other_protocols_are_refused(self):
        self.hub.faults += [hub_server.redirect_to("file:///etc/passwd")]
        self.assertIn("leads to no address", self.refused())
        self.hub.faults += [hub_server.redirect_to(f"{self.hub.content_origin}/{kName}/{kFile}")] * 20
        self.assertIn("without end", self.refused())

    def test_no_connection_is_said_with_the_host_and_the_proxy(self):
        self.assertIn("127.0.0.1:9", self.refused(kName, HF_ENDPOINT="http://127.0.0.1:9"))
        said = self.refused(kName, HF_ENDPOINT="http://hub.invalid", http_proxy="http://user:secret@127.0.0.1:9",
                            https_proxy="http://user:secret@127.0.0.1:9")
        self.assertIn("through the proxy 127.0.0.1", said)
        self.assertNotIn("secret", said)

    def test_without_a_connection_what_is_here_serves(self):
        path = self.get()
        for variables in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
            self.hub.requests.clear()
            self.assertEqual(self.get(kName, **variables), path)
            self.assertEqual(self.hub.requests, [])

    def test_offline_a_model_that_is_not_here_is_refused_without_asking(self):
        self.assertIn("HF_HUB_OFFLINE", self.refused(kName, HF_HUB_OFFLINE="1"))
        self.assertEqual(self.hub.requests, [])

    def test_an_answer_of_no_hub_is_refused(self):
        for body in (b"<html>", b"[]", b'{"sha": "../../x"}'):
            self.hub.api_faults.append(lambda handler, _, __, body=body: hub_server.send(handler, 200, body))
            self.assertIn("none of a model hub", self.refused())


class TheToken(GetTest):
    def setUp(self):
        super().setUp()
        self.repository.token, self.repository.gated = "hf_secret", True

    def test_a_gated_model_without_a_token_is_refused_with_what_to_do(self):
        said = self.refused()
        self.assertIn("accept its terms", said)
        self.assertIn("HF_TOKEN", said)

    def test_a_token_without_access_is_told(self):
        self.assertIn("your token has no access", self.refused(kName, HF_TOKEN="hf_other"))

    def test_a_private_or_absent_repository_is_told(self):
        self.assertIn("private or gated", self.refused("nobody/nothing"))
        self.assertIn("that your token may read", self.refused("nobody/nothing", HF_TOKEN="hf_secret"))

    def test_the_token_comes_from_the_variable_or_its_file_and_never_leaves_the_hub(self):
        (self.home / "there").write_text("hf_secret\n")
        home = self.home / "hf"
        home.mkdir()
        (home / "token").write_text("hf_secret")
        for number, variables in enumerate([{"HF_TOKEN": "hf_secret"}, {"HF_TOKEN_PATH": str(self.home / "there")},
                                            {"HF_HOME": str(home)}]):
            self.hub.requests.clear()
            self.get(kName, **variables | {"HF_HUB_CACHE": str(self.home / f"cache{number}")})
            self.assertTrue(all(each.token == "Bearer hf_secret" for each in self.hub.requests if each.host == "hub"))
            self.assertEqual([each.token for each in self.hub.asked_for_content()], [None])

    def test_a_token_with_a_line_end_is_no_token(self):
        self.assertIn("is no token", self.refused(kName, HF_TOKEN="hf\nX-Other: 1"))


class TheProcess(GetTest):
    def start(self, *arguments, **environment):
        process = subprocess.Popen(self.command(kName, "--json", *arguments), env=self.environment | environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def until_bytes(self, process):
        """Until content is on the disk."""
        for line in process.stdout:
            if json.loads(line)["event"] == "progress":
                return
        self.fail("it ended: " + process.stderr.read())

    def stalled(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.hub.faults.append(hub_server.silent_after(2_000_000, gate))
        return gate

    def test_after_a_kill_in_mid_download_the_next_get_goes_on(self):
        self.stalled()
        process = self.start()
        self.until_bytes(process)
        process.send_signal(signal.SIGKILL)
        process.wait(kPatienceS)
        self.assertEqual(list(self.home.rglob("*.gguf")), [])
        self.hub.requests.clear()
        self.assertEqual(self.get().read_bytes(), kModel)
        self.assertGreater(int(self.hub.asked_for_content()[0].range.removeprefix("bytes=").rstrip("-")), 0)

    def test_an_interruption_ends_it_soon_and_the_next_get_goes_on(self):
        self.stalled()
        process = self.start()
        self.until_bytes(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(kPatienceS), 130)
        self.assertEqual(self.get().read_bytes(), kModel)
        self.assertIsNotNone(self.hub.asked_for_content()[-1].range)

    def test_of_two_at_once_the_second_waits_and_loads_nothing(self):
        gate = self.stalled()
        first = self.start(HF_HUB_DOWNLOAD_TIMEOUT="60")
        self.until_bytes(first)
        second = self.start()
        for line in second.stdout:
            if "waiting for it" in line:
                break
        else:
            self.fail("it did not wait")
        gate.set()
        for process in (first, second):
            events = [json.loads(line) for line in process.stdout]
            self.assertEqual(process.wait(kPatienceS), 0, process.stderr.read())
            self.assertEqual(events[-1]["event"], "done")
        self.assertEqual(len([each for each in self.hub.asked_for_content() if each.range is None]), 1)

    def test_a_limit_on_files_is_told_and_nothing_is_left(self):
        said = self.refused(limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)))
        self.assertIn("ulimit -f", said)
        self.assertEqual(self.left(), [])

    def test_the_events_of_json_are_offer_progress_and_done(self):
        done = self.run_get("--json", kName)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(events[0]["event"], "offer")
        self.assertEqual((events[0]["bytes"], events[0]["license"], events[0]["bytesHere"]),
                         (len(kModel), "apache-2.0", 0))
        self.assertGreater(events[0]["bytesFree"], 0)
        progress = [event for event in events if event["event"] == "progress"]
        self.assertEqual((progress[-1]["bytes"], progress[-1]["totalBytes"]), (len(kModel), len(kModel)))
        self.assertEqual(events[-1], {"event": "done", "path": str(self.folder / "snapshots" / kCommit / kFile),
                                      "wasHere": False})
        self.hub.faults.append(hub_server.wrong_bytes)
        self.repository.files[kFile] = kModel + bytes(32)
        failed = json.loads(self.run_get("--json", kName).stdout.splitlines()[-1])
        self.assertEqual(failed["event"], "failed")
        self.assertIn("wrong checksum", failed["reason"])

    def test_a_dry_run_loads_nothing(self):
        done = self.run_get("--dry-run", kName)
        self.assertEqual(done.returncode, 0)
        self.assertIn("licence  apache-2.0", done.stderr)
        self.assertEqual(list(self.home.rglob("*.gguf")), [])
        self.assertEqual(self.hub.asked_for_content(), [])

    def test_on_a_terminal_the_user_is_asked(self):
        for answer, is_loaded in (("n", False), ("y", True)):
            leader, terminal = pty.openpty()
            process = subprocess.Popen(self.command(kName), env=self.environment, stdin=terminal, stderr=terminal,
                                       stdout=subprocess.PIPE, text=True)
            os.close(terminal)
            shown = b""
            while b"[Y/n]" not in shown:
                shown += os.read(leader, 4096)
            self.assertIn(b"licence", shown)
            os.write(leader, answer.encode() + b"\n")
            # Until the terminal is closed; a full one would hold the process up.
            with contextlib.suppress(OSError):
                while os.read(leader, 4096):
                    pass
            process.communicate(timeout=kPatienceS)
            os.close(leader)
            self.assertEqual(bool(list(self.home.rglob("*.gguf"))), is_loaded)
            self.assertEqual(process.returncode, 0 if is_loaded else 1)

    def test_the_speed_on_this_machine_is_told_before_it_loads(self):
        done = subprocess.run([kEfimd, "model", "get", "--json", "--dry-run", kName], env=self.environment, check=True,
                              capture_output=True, text=True, timeout=kPatienceS)
        speeds = json.loads(done.stdout)["speeds"]
        self.assertEqual(speeds[-1]["device"], "cpu")
        for speed in speeds:
            self.assertGreater(speed["promptTokensPerS"], 0)
            self.assertGreater(speed["generationTokensPerS"], 0)


@unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
class TheDisk(GetTest):
    def test_a_disk_without_room_is_told_before_anything_is_loaded(self):
        cache = self.small_disk("8m")
        said = self.refused(kName, HF_HUB_CACHE=str(cache))
        self.assertIn("free, and", said)
        self.assertEqual(list(cache.rglob("blobs/*")), [])
        self.assertEqual(self.hub.asked_for_content(), [])

    def test_a_disk_that_fills_up_meanwhile_is_told_and_nothing_is_left(self):
        cache = self.small_disk("100m")
        def fill(handler, content, begin):
            hub_server.begin_content(handler, content, begin)
            handler.wfile.write(content[:1_000_000])
            with contextlib.suppress(OSError), open(cache / "other", "wb") as other:
                while True:
                    other.write(b"\0" * 1_000_000)
            handler.wfile.write(content[1_000_000:])
        self.hub.faults.append(fill)
        self.assertIn("the disk is full", self.refused(kName, HF_HUB_CACHE=str(cache)))
        self.assertEqual(list(cache.rglob("blobs/*")), [])


class AnAddress(GetTest):
    def setUp(self):
        super().setUp()
        self.hub.plain["/files/coder.gguf"] = (kModel, '"one"')
        self.url = f"{self.hub.endpoint}/files/coder.gguf"
        self.environment["HF_ENDPOINT"] = "https://hub.invalid"

    def test_it_is_put_into_efimds_own_folder(self):
        path = self.get(self.url)
        self.assertEqual(path, self.home / ".local/share/efimd/models/coder.gguf")
        self.assertEqual(path.read_bytes(), kModel)
        self.assertEqual([each.name for each in path.parent.iterdir()], ["coder.gguf"])

    def test_it_goes_on_only_with_the_same_content(self):
        self.hub.faults += [lambda *call: cut_with_tag(*call)] + [hub_server.status(503, Retry_After="0")] * 5
        self.refused(self.url)
        self.hub.faults.clear()
        self.hub.requests.clear()
        self.hub.plain["/files/coder.gguf"] = (kModel, '"two"')
        self.assertEqual(self.get(self.url).read_bytes(), kModel)
        self.assertEqual(self.hub.requests[0].if_range, '"one"')

    def test_a_file_that_is_none_is_removed(self):
        self.hub.plain["/files/coder.gguf"] = (b"<html>" * 1000, '"one"')
        self.assertIn("no whole GGUF file", self.refused(self.url))
        self.assertEqual([each for each in self.home.rglob("*.incomplete*")], [])


def cut_with_tag(handler, content, begin):
    hub_server.begin_content(handler, content, begin, '"one"')
    handler.wfile.write(content[:1_000_000])
    handler.close_connection = True


class TheCatalogue(GetTest):
    def test_recommend_names_one_model_and_why(self):
        done = subprocess.run([kEfimd, "model", "recommend", "--json"], env=self.environment, capture_output=True, text=True,
                              timeout=kPatienceS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertTrue(said["onlyBundled"])
        self.assertEqual(said["recommended"]["restricted"], "")
        self.assertTrue(said["recommended"]["reason"])
        self.assertGreater(said["memoryBytes"], 0)
        self.assertEqual({each["kind"] for each in said["devices"]} & {"cpu"}, {"cpu"})
        names = [each["name"] for each in said["models"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn(said["recommended"]["name"], names)
        self.assertTrue(all(each["reason"] for each in said["models"]))

    def test_a_restricted_licence_is_shown_before_it_is_loaded(self):
        self.hub.repositories["ggml-org/Qwen2.5-Coder-3B-Q8_0-GGUF"] = Repository({"qwen2.5-coder-3b-q8_0.gguf": kModel},
                                                                                  license="other")
        done = self.run_get("qwen2.5-coder-3b", "--dry-run")
        self.assertIn("licence  Qwen Research: for research only", done.stderr)

    def test_a_name_that_is_not_in_it_is_answered_with_those_that_are(self):
        self.assertIn("qwen2.5-coder-0.5b", self.refused("qwen"))

    def test_a_name_of_it_that_is_not_here_says_how_to_get_it(self):
        done = subprocess.run([kEfimd, "model", "use", "qwen2.5-coder-7b"], env=self.environment, capture_output=True,
                              text=True, timeout=kPatienceS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("efimd model get qwen2.5-coder-7b", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
