"""A model hub of the tests' own: the hub's interface, redirects to a second host, and all that goes wrong on a network."""

import hashlib
import http.server
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
import tomllib
import urllib.parse

kCommit = "0123456789abcdef0123456789abcdef01234567"
kRange = re.compile(r"bytes=(\d+)-$")


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repository:
    """Files by path; `lfs` False names their content as git does. The hub describes most gated ones to everybody."""

    described_to_all = False

    def __init__(self, files, license="apache-2.0", lfs=True, token=None, gated=False, commit=kCommit):
        self.files, self.license, self.lfs = files, license, lfs
        self.token, self.gated, self.commit = token, gated, commit

    def hash_of(self, path):
        content = self.files[path]
        return hashlib.sha256(content).hexdigest() if self.lfs else git_id(content)

    def described(self):
        siblings = []
        for path, content in self.files.items():
            sibling = {"rfilename": path, "size": len(content), "blobId": git_id(content)}
            if self.lfs:
                sibling["lfs"] = {"sha256": self.hash_of(path), "size": len(content), "pointerSize": 134}
            siblings.append(sibling)
        return {"id": "x", "sha": self.commit, "gated": "auto" if self.gated else False, "siblings": siblings,
                "cardData": {"license": self.license}, "tags": ["gguf", f"license:{self.license}"]}


class Request:
    """What a client sent, for the tests to look at."""

    def __init__(self, host, path, headers):
        self.host, self.path = host, path
        self.range, self.token = headers.get("Range"), headers.get("Authorization")
        self.if_range = headers.get("If-Range")


class Hub:
    """Two servers: the hub, and the host of contents to which it redirects. Faults are queued by the tests.

    A fault is a function of (handler, content, first byte) that answers a request for content instead of the server; each
    serves one request.
    """

    def __init__(self):
        self.repositories, self.requests, self.faults, self.api_faults = {}, [], [], []
        self.plain = {}  # path -> (content, etag)
        self.ranges, self.secure = True, None
        self.hub, self.contents = self._start("hub"), self._start("contents")
        self.endpoint = f"http://127.0.0.1:{self.hub.server_port}"
        self.content_origin = f"http://127.0.0.1:{self.contents.server_port}"

    def endpoint_with_tls(self, certificate, key):
        """Of another door to the hub."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.secure = self._start("hub", context)
        return f"https://127.0.0.1:{self.secure.server_port}"

    def _start(self, name, context=None):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            host = name

            def log_message(self, *arguments):
                pass

            def do_GET(self):
                hub.requests.append(Request(self.host, self.path, self.headers))
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        if context:
            server.handle_error = lambda *_: None  # a client that does not trust it
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def close(self):
        for server in filter(None, (self.hub, self.contents, self.secure)):
            server.shutdown()
            server.server_close()

    def asked_for_content(self):
        return [request for request in self.requests if request.host == "contents"]

    def answer(self, handler):
        path = urllib.parse.unquote(handler.path.split("?")[0])
        if handler.host == "contents":
            return self.answer_content(handler, path)
        if path in self.plain:
            content, etag = self.plain[path]
            return self.send_content(handler, content, etag)
        if path.startswith("/api/models/"):
            return self.answer_api(handler, path.removeprefix("/api/models/"))
        match = re.match(r"/([^/]+/[^/]+)/resolve/([0-9a-f]{40})/(.+)$", path)
        if not match or match[1] not in self.repositories:
            return send(handler, 404)
        repository = self.repositories[match[1]]
        if not self.may_read(handler, repository):
            return None
        if match[3] not in repository.files:
            return send(handler, 404)
        return send(handler, 302, headers={
            "Location": f"{self.content_origin}/{match[1]}/{urllib.parse.quote(match[3])}?signature=1",
            "X-Linked-Etag": f'"{repository.hash_of(match[3])}"', "X-Repo-Commit": repository.commit,
            "X-Linked-Size": str(len(repository.files[match[3]]))})

    def answer_api(self, handler, rest):
        if self.api_faults:
            return self.api_faults.pop(0)(handler, b"", 0)
        name, _, revision = rest.partition("/revision/")
        if name not in self.repositories:
            # As the hub does: who has no token shall not learn which repositories there are.
            return send(handler, 401, headers={"X-Error-Code": "RepoNotFound"})
        if revision not in ("main", self.repositories[name].commit):
            return send(handler, 404, headers={"X-Error-Code": "RevisionNotFound"})
        if not self.repositories[name].described_to_all and not self.may_read(handler, self.repositories[name]):
            return None
        return send(handler, 200, json.dumps(self.repositories[name].described()).encode())

    def may_read(self, handler, repository):
        if repository.token is None or handler.headers.get("Authorization") == f"Bearer {repository.token}":
            return True
        send(handler, 403 if handler.headers.get("Authorization") else 401,
             headers={"X-Error-Code": "GatedRepo" if repository.gated else "RepoNotFound"})
        return False

    def answer_content(self, handler, path):
        organisation, name, file = path.lstrip("/").split("/", 2)
        content = self.repositories[f"{organisation}/{name}"].files[file]
        self.send_content(handler, content, '"of-the-host"')

    def send_content(self, handler, content, etag):
        match = kRange.match(handler.headers.get("Range") or "")
        begin = int(match[1]) if match and self.ranges else 0
        if handler.headers.get("If-Range") not in (None, etag):
            begin = 0
        if self.faults:
            return self.faults.pop(0)(handler, content, begin)
        return send_from(handler, content, begin, etag)


def send(handler, status, body=b"", headers=None):
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def begin_content(handler, content, begin, etag='"of-the-host"', whole=None):
    whole = len(content) if whole is None else whole
    handler.send_response(206 if begin else 200)
    if begin:
        handler.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
    handler.send_header("Content-Length", str(whole - begin))
    handler.send_header("ETag", etag)
    handler.end_headers()


def send_from(handler, content, begin, etag='"of-the-host"'):
    if begin and begin >= len(content):
        return send(handler, 416)
    begin_content(handler, content, begin, etag)
    handler.wfile.write(content[begin:])
    return None


def serve_catalogue(hub, catalogue, content):
    """Every model of a catalogue.toml, each with the same content."""
    for model in tomllib.loads(catalogue)["model"]:
        hub.repositories[model["repository"]] = Repository({model["file"]: content}, license=model["license"])


# Faults.

def cut_off_after(count):
    """Sends so many bytes, then breaks the connection."""
    def fault(handler, content, begin):
        begin_content(handler, content, begin)
        handler.wfile.write(content[begin:begin + count])
        handler.wfile.flush()
        # Without a reset the client might see an orderly end.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        handler.close_connection = True
    return fault


def silent_after(count, gate):
    """Sends so many bytes, then nothing until the gate opens."""
    def fault(handler, content, begin):
        begin_content(handler, content, begin)
        handler.wfile.write(content[begin:begin + count])
        handler.wfile.flush()
        gate.wait(120)
        handler.close_connection = True
    return fault


def wrong_bytes(handler, content, begin):
    begin_content(handler, content, begin)
    handler.wfile.write(bytes(byte ^ 0xFF for byte in content[begin:]))


def another_part(handler, content, begin):
    """A range that was not asked for."""
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 0-{len(content) - 1}/{len(content)}")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def too_long(handler, content, begin):
    """More than the hub said, without saying how much."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for piece in (content, b"more"):
        handler.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
    handler.wfile.write(b"0\r\n\r\n")


def status(code, **headers):
    def fault(handler, content, begin):
        send(handler, code, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return fault


def redirect_to(url):
    def fault(handler, content, begin):
        send(handler, 302, headers={"Location": url})
    return fault


def slowly(piece_bytes, pause_s):
    def fault(handler, content, begin):
        begin_content(handler, content, begin)
        for at in range(begin, len(content), piece_bytes):
            handler.wfile.write(content[at:at + piece_bytes])
            handler.wfile.flush()
            time.sleep(pause_s)
    return fault


def main():
    """For tests in other languages: serves the catalogue until stdin ends.

        hub_server.py CATALOGUE CONTENT
    """
    catalogue, content = (open(path, "rb").read() for path in sys.argv[1:])
    hub = Hub()
    serve_catalogue(hub, catalogue.decode(), content)
    print(hub.endpoint, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
