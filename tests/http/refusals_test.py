#!/usr/bin/env python3
"""efimd-http refuses web pages, strangers and what is too much, and goes on serving."""

import json
import os
import shutil
import socket
import stat
import subprocess
import unittest

from http_user import HttpTest, kAfter, kBefore

kPython = shutil.which("python3", path="/usr/bin:/bin")


class Refusals(HttpTest):
    def status(self, headers=None, method="POST", path="/infill", body=b"{}"):
        return self.request(method, path, body, headers)[0]

    def raw(self, data):
        """What comes back for bytes that are perhaps no HTTP."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65536), b""))
            except ConnectionError:
                return b""

    def test_without_the_token_or_with_a_wrong_one(self):
        for value in (None, "Bearer ", "Bearer " + "0" * 64, self.token, f"Bearer {self.token}0"):
            self.assertEqual(self.status({"Authorization": value}), 401, value)
        self.assertEqual(self.status({"Authorization": None}, "GET", "/v1/models"), 401)
        self.assertEqual(self.status(), 400)  # with the token it is read, and has no text
        file = self.folder / "state" / "http_token"
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)

    def test_ollamas_clients_get_each_refusal_as_text(self):
        """They show what "error" is, which of an object is nothing that one can read."""
        for status, method, path, headers in (
                (401, "POST", "/api/generate", {"Authorization": None}), (403, "GET", "/api/tags", {"Host": "evil.example"}),
                (415, "POST", "/api/show", {"Content-Type": "text/plain"}), (404, "POST", "/api/chat", {}),
                (405, "GET", "/api/generate", {}), (400, "POST", "/api/generate", {})):
            answer = self.request(method, path, b"[" if method == "POST" else None, headers)
            self.assertEqual(answer[0], status, answer)
            self.assertIsInstance(json.loads(answer[2])["error"], str)
        self.assertEqual(json.loads(self.request("GET", "/props", None, {"Authorization": None})[2])["error"]["code"], 401)

    @unittest.skipUnless(os.getuid() == 0 and kPython, "only root can be another user, who needs a Python of the system")
    def test_another_user_of_this_machine(self):
        self.folder.chmod(0o755)  # as a home may be
        nobody = dict(user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        read = subprocess.run(["cat", self.folder / "state" / "http_token"], **nobody)
        self.assertIn("Permission denied", read.stderr)
        ask = ("import sys, urllib.request, urllib.error\n"
               "request = urllib.request.Request(sys.argv[1], b'{}', {'Content-Type': 'application/json', 'Authorization': 'Bearer ' + sys.argv[2]})\n"
               "try:\n    urllib.request.urlopen(request)\nexcept urllib.error.HTTPError as error:\n    print(error.code)\n")
        asked = subprocess.run([kPython, "-c", ask, f"http://127.0.0.1:{self.port}/infill", "0" * 64], env={}, **nobody)
        self.assertEqual(asked.stdout.strip(), "401", asked.stderr)
        connect = "import socket, sys\nsocket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        refused = subprocess.run([kPython, "-c", connect, self.runtime / "daemon.sock"], env={}, **nobody)
        self.assertIn("PermissionError", refused.stderr)

    def test_a_page_whose_name_was_bound_to_this_machine(self):
        for host in ("evil.example", f"evil.example:{self.port}", f"127.0.0.1:{self.port + 1}", ""):
            self.assertEqual(self.status({"Host": host}), 403, host)

    def test_a_page_that_sends_what_needs_no_leave(self):
        page = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
        self.assertEqual(self.status(page), 403)
        self.assertEqual(self.status({"Origin": "null"}), 403)
        self.assertEqual(self.status({"Sec-Fetch-Site": "cross-site"}), 403)
        self.assertEqual(self.status({"Content-Type": "text/plain"}), 415)
        status, headers, _ = self.request("OPTIONS", "/infill", None, {
            "Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
        self.assertEqual(status, 403)
        self.assertFalse([name for name in headers if name.lower().startswith("access-control")])

    def test_only_this_machine_reaches_it(self):
        with open(f"/proc/net/tcp", encoding="ascii") as table:
            ours = [line.split()[1] for line in table if f":{self.port:04X} " in line and " 0A " in line]
        self.assertEqual(ours, [f"0100007F:{self.port:04X}"])

    def test_what_is_too_large_or_no_http(self):
        head = f"POST /infill HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n" \
               "Content-Type: application/json\r\n".encode()
        self.assertIn(b" 413 ", self.raw(head + b"Content-Length: 99999999\r\n\r\n{}"))
        self.assertIn(b" 431 ", self.raw(head + b"X: " + b"a" * 20000 + b"\r\n\r\n"))
        self.assertIn(b" 400 ", self.raw(b"nonsense\r\n\r\n"))
        self.assertIn(b" 400 ", self.raw(head + b"Host: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"))
        self.assertIn(b" 400 ", self.raw(head + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n{}"))
        deep = b"[" * 100000
        self.assertIn(b" 400 ", self.raw(head + b"Content-Length: %d\r\n\r\n" % len(deep) + deep))
        self.assertTrue(self.infill(kBefore, kAfter)["content"])

    def test_another_method_is_answered_with_the_one_that_is_wanted(self):
        for method, path, wanted in (("GET", "/infill", "POST"), ("OPTIONS", "/v1/completions", "POST"),
                                     ("DELETE", "/health", "GET, HEAD"), ("HEAD", "/completion", "POST")):
            status, headers, text = self.request(method, path)
            self.assertEqual((status, headers["Allow"]), (405, wanted), (method, path))
            self.assertIn("" if method == "HEAD" else f"this path wants {wanted}", text)

    def test_a_client_of_http_1_0_is_told_whether_the_connection_stays(self):
        for said, stays in ((b"", b"close"), (b"Connection: keep-alive\r\n", b"keep-alive")):
            client = self.connect()
            client.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n" + said + b"\r\n")
            self.assertIn(b"\r\nConnection: " + stays + b"\r\n", client.recv(4096))

    def test_a_target_that_is_a_whole_url(self):
        ours = f"127.0.0.1:{self.port}"
        for target, status in ((f"http://{ours}/?a=b", 200), (f"HTTP://localhost:{self.port}", 200), (f"http://[::1]:{self.port}/infill", 405),
                               ("http://evil.example/", 403), (f"http://{ours}@evil.example/", 403), ("http://", 403)):
            client = self.connect()
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: {ours}\r\nX-Api-Key: {self.token}\r\n\r\n".encode())
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 %d " % status), target)

    def test_who_expects_100_gets_it_unless_it_speaks_http_1_0(self):
        rest = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n" \
               "Content-Type: application/json\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n".encode()
        newer = self.connect()
        newer.sendall(b"POST /infill HTTP/1.1\r\n" + rest)
        self.assertIn(b" 100 ", newer.recv(4096))  # before the body
        older = self.connect()
        older.sendall(b"POST /infill HTTP/1.0\r\n" + rest + b"{}")
        self.assertTrue(older.recv(4096).startswith(b"HTTP/1.1 400 "))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(connection.close)
        return connection

    def test_too_many_connections_are_told_so_and_the_next_is_served(self):
        head = f"POST /infill HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n" \
               "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode()
        held = [self.connect() for _ in range(64)]
        for connection in held:
            connection.sendall(head)
            self.assertIn(b"100", connection.recv(4096))  # it is being served
        self.assertIn(b"503", self.connect().recv(4096))
        for connection in held:
            connection.close()
        self.assertTrue(self.infill(kBefore, kAfter)["content"])

    def test_connections_without_a_request_give_way_and_those_of_strangers_first(self):
        ours = self.connection()
        self.assertEqual(self.request("GET", "/v1/models", connection=ours)[0], 200)
        strangers = [self.connect() for _ in range(100)]
        self.assertEqual(strangers[0].recv(1), b"")
        self.assertEqual(self.request("GET", "/v1/models", connection=ours)[0], 200)  # on the same connection
        for _ in range(64):  # a client that leaves each of its connections open
            self.assertEqual(self.request("GET", "/v1/models", connection=self.connection())[0], 200)
        self.assertTrue(self.infill(kBefore, kAfter)["content"])


class WithoutToken(HttpTest):
    options = "require_token = false"

    def test_pages_are_refused_all_the_same(self):
        no_token = {"Authorization": None}
        self.assertEqual(self.request("POST", "/infill", b"{}", no_token)[0], 400)
        self.assertEqual(self.request("POST", "/infill", b"{}", no_token | {"Origin": "http://a"})[0], 403)
        self.assertEqual(self.request("POST", "/infill", b"{}", no_token | {"Content-Type": "text/plain"})[0], 415)
        self.assertEqual(self.request("POST", "/infill", b"{}", no_token | {"Host": "a"})[0], 403)


class AFileThatOthersRead(HttpTest):
    def test_its_token_is_not_used(self):
        self.assertEqual(self.run_efimd("http", "--stop").returncode, 0)
        (self.folder / "state" / "http_token").chmod(0o644)
        started = self.run_efimd("http", "--background")
        self.assertEqual(started.returncode, 1)
        self.assertIn("others may read it", started.stderr)


if __name__ == "__main__":
    unittest.main()
