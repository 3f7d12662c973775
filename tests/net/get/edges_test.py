#!/usr/bin/env python3
"""efimd model get where a user or a network leaves the usual way: what is lost, what is said, and what is loaded in vain."""

import os
import pty
import subprocess
import threading
import unittest

import hub_server
from get_case import GetTest, kEfimd, kModel, kName, kFile, kPatienceS


def page(handler, content, begin):
    """What a network sends that wants a login first."""
    hub_server.send(handler, 200, b"<html>Log in</html>", {"Content-Type": "text/html"})


def page_in_chunks(handler, content, begin):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html; charset=utf-8")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"6\r\n<html>\r\n0\r\n\r\n")


class WhatCame(GetTest):
    def test_a_page_in_its_place_does_not_cost_what_came(self):
        for number, fault in enumerate((page, page_in_chunks)):
            cache = {"HF_HUB_CACHE": str(self.home / str(number))}
            self.hub.faults += [hub_server.cut_off_after(2_000_000), fault]
            self.assertIn("something else than the file", self.run_get(kName, **cache).stderr)
            self.hub.requests.clear()
            self.assertEqual(self.get(kName, **cache).read_bytes(), kModel)
            first = self.hub.asked_for_content()[0].range
            self.assertGreater(int((first or "bytes=0-").removeprefix("bytes=").rstrip("-")), 0)

    def test_a_file_of_another_address_is_not_taken_in_silence(self):
        for folder in ("one", "two"):
            self.hub.plain[f"/{folder}/model.gguf"] = (kModel, '"tag"')
        self.environment["HF_ENDPOINT"] = "https://hub.invalid"
        self.get(f"{self.hub.endpoint}/one/model.gguf")
        done = self.run_get(f"{self.hub.endpoint}/two/model.gguf")
        self.assertEqual(done.returncode, 0)
        self.assertIn("remove it", done.stderr)


    def test_what_was_got_is_used_by_the_same_name(self):
        use = lambda name: subprocess.run([kEfimd, "model", "use", name], env=self.environment,  # noqa: E731
                                          capture_output=True, text=True, timeout=kPatienceS, check=False)
        path = self.get()
        for name in (kName, kName + ":q8_0", f"{kName}:{kFile}"):
            self.assertIn(str(path), use(name).stdout, name)
        for name in ("small/other", kName + ":Q4_K_M"):
            self.assertEqual(use(name).returncode, 1)
        self.repository.files["coder-F16.gguf"] = kModel + bytes(32)
        self.get(kName + ":F16")
        self.assertIn("name one: coder-F16.gguf, coder-Q8_0.gguf", use(kName).stderr)


class WhatIsSaid(GetTest):
    def test_an_interruption_at_the_question_is_an_answer(self):
        leader, terminal = pty.openpty()
        self.addCleanup(os.close, leader)
        process = subprocess.Popen(self.command(kName), env=self.environment, stdin=terminal, stderr=terminal,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        os.close(terminal)
        shown = b""
        while b"[Y/n]" not in shown:
            shown += os.read(leader, 4096)
        process.send_signal(2)
        self.assertEqual(process.wait(kPatienceS), 130)
        self.assertEqual(self.hub.asked_for_content(), [])

    def test_a_proxy_is_named_only_where_it_is_used(self):
        closed = "http://127.0.0.1:9"
        for number, variables in enumerate([{"http_proxy": closed, "no_proxy": "example.org, 127.0.0.1"},
                                            {"all_proxy": closed, "NO_PROXY": "*"}, {"https_proxy": closed}]):
            done = self.run_get(kName, **variables, HF_HUB_CACHE=str(self.home / str(number)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("proxy", done.stderr)
            said = self.refused("nobody/here", HF_ENDPOINT="http://127.0.0.1:9", **variables) if number < 2 else ""
            self.assertNotIn("proxy 127", said)

    def test_what_is_for_this_machine_goes_through_no_proxy(self):
        """It would be sent the token in clear."""
        closed = "http://127.0.0.1:9"
        port = self.hub.hub.server_port
        for number, (host, variables) in enumerate([("127.0.0.1", {"http_proxy": closed}), ("localhost", {"ALL_PROXY": closed}),
                                                    ("127.0.0.1", {"http_proxy": closed, "no_proxy": "example.org"})]):
            done = self.run_get(kName, **variables, HF_ENDPOINT=f"http://{host}:{port}", HF_TOKEN="hf_secret",
                                HF_HUB_CACHE=str(self.home / str(number)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("proxy", done.stderr)

    def refused(self, *arguments, **environment):
        done = self.run_get(*arguments, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_a_token_that_the_hub_does_not_know_is_told(self):
        self.hub.api_faults.append(
            hub_server.status(401, X_Error_Message="Invalid credentials in Authorization header"))
        said = self.refused(kName, HF_TOKEN="hf_old")
        self.assertIn("does not know your token", said)
        self.assertIn("need none", said)

    def test_a_gated_repository_that_is_described_to_all_says_how_to_get_in(self):
        self.repository.token, self.repository.gated, self.repository.described_to_all = "hf_secret", True, True
        page = f"{self.hub.endpoint}/{kName}"
        self.assertIn(f"only known users load it; accept its terms at {page}, and set HF_TOKEN", self.refused(kName))
        self.assertIn(f"your token has no access to it; accept its terms at {page}", self.refused(kName, HF_TOKEN="hf_other"))
        self.assertEqual(self.run_get(kName, HF_TOKEN="hf_secret").returncode, 0)

    def test_certificates_that_the_user_names_are_trusted(self):
        pair = self.home / "cert.pem", self.home / "key.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=IP:127.0.0.1", "-keyout", pair[1], "-out", pair[0]], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("no openssl")
        endpoint = self.hub.endpoint_with_tls(*pair)
        self.assertIn("certificate", self.refused(kName, HF_ENDPOINT=endpoint))
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            done = self.run_get(kName, "--dry-run", HF_ENDPOINT=endpoint, **{name: str(pair[0])})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_offline_an_address_is_not_asked_either(self):
        self.hub.plain["/files/coder.gguf"] = (kModel, '"one"')
        address = f"http://localhost:{self.hub.hub.server_port}/files/coder.gguf"  # no hub's
        self.assertIn("HF_HUB_OFFLINE is set, and coder.gguf is not in", self.refused(address, HF_HUB_OFFLINE="1"))
        self.assertEqual(self.hub.requests, [])
        path = self.get(address)
        self.hub.requests.clear()
        self.assertEqual(self.get(address, HF_HUB_OFFLINE="1"), path)
        self.assertEqual(self.hub.requests, [])

    def test_what_the_hub_wants_to_be_waited_for_is_said(self):
        self.hub.api_faults.append(hub_server.status(429, RateLimit='"api";r=0;t=1'))
        done = self.run_get()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("asks to wait 1 s", done.stderr)

    def test_a_repository_of_the_catalogue_that_moved_is_told_so(self):
        self.assertIn("out of date", self.refused("qwen2.5-coder-0.5b"))


@unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
class TheDisk(GetTest):
    def test_a_disk_with_room_for_one_part_of_two_is_told_before_anything_is_loaded(self):
        cache = self.small_disk(str(len(kModel) * 3 // 2 + (64 << 20)))  # 64 MiB are left to others
        self.repository.files = {f"big-Q8_0-{part:05}-of-00002.gguf": kModel + bytes(32 * part) for part in (1, 2)}
        self.assertIn("free, and", self.refused(kName, HF_HUB_CACHE=str(cache)))
        self.assertEqual(self.hub.asked_for_content(), [])


class WhatCannotRun(GetTest):
    def setUp(self):
        super().setUp()
        at = kModel.index(b"general.architecture")
        value = kModel.index(b"llama", at)
        self.mamba = kModel[:value] + b"mamba" + kModel[value + 5:]
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def test_a_model_that_cannot_run_is_refused_once_its_head_is_here(self):
        self.repository.files[kFile] = self.mamba
        self.hub.faults.append(hub_server.silent_after(len(kModel) // 2, self.gate))
        said = self.refused(kName, HF_HUB_DOWNLOAD_TIMEOUT="3600")
        self.assertIn("mamba", said)
        self.assertIn("efimd cannot run it", said)
        self.assertEqual(self.left(), [])

    def test_an_address_is_looked_at_in_the_same_way(self):
        self.hub.plain["/m.gguf"] = (self.mamba, '"tag"')
        self.hub.faults.append(hub_server.silent_after(len(kModel) // 2, self.gate))
        said = self.refused(f"{self.hub.endpoint}/m.gguf", HF_ENDPOINT="https://hub.invalid", HF_HUB_DOWNLOAD_TIMEOUT="3600")
        self.assertIn("efimd cannot run it", said)
        self.assertEqual([each for each in self.home.rglob("*.incomplete*")], [])


if __name__ == "__main__":
    unittest.main()
