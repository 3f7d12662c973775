"""A server elsewhere of the tests' own: /v1/completions, /v1/models and /tokenize, and every way not to answer."""

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time

kText = "fibonacci(n - 2)\n"


class EngineServer:
    """`mode` may change at any time: ok, hung, slow, html, nonsense, cut, error, silent (an empty answer), refuses-logprobs."""

    def __init__(self, key="", model="qwen2.5-coder", port=0, certificate=None):
        self.key, self.model, self.mode, self.text = key, model, "ok", kText
        self.requests, self.paths, self.cancelled, self.connections = [], [], 0, 0
        self.release, self.open = threading.Event(), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections += 1
                outer.open.append(self.connection)

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.handle(self, None)

            def do_POST(self):
                outer.handle(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that hangs up is what is tested

        self.server = Server(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        """As if it were killed: no connection is left."""
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle(self, handler, body):
        mode = self.mode  # a test may change it as soon as it sees the request
        self.paths.append(handler.path)
        if self.key and handler.headers.get("Authorization") != f"Bearer {self.key}":
            return self.say(handler, 401, {"error": {"message": "no such key"}})
        if mode == "hung":
            self.release.wait(120)
            return None
        if handler.path == "/v1/models":
            return self.say(handler, 200, {"object": "list", "data": [{"id": self.model}]})
        if handler.path == "/tokenize":
            return self.say(handler, 404, {"error": "none"})
        self.requests.append(body)
        if mode == "error":
            return self.say(handler, 500, {"error": {"message": "out of memory"}})
        if mode == "redirect":
            return self.say(handler, 302, {}, {"Location": "http://127.0.0.1:1/v1/completions"})
        if mode == "refuses-logprobs" and "logprobs" in body:
            return self.say(handler, 400, {"error": {"message": "logprobs is not supported"}})
        return self.stream(handler, body, mode)

    def say(self, handler, status, value, headers=None):
        data = json.dumps(value).encode()
        handler.send_response(status)
        for name, text in (headers or {}).items():
            handler.send_header(name, text)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def stream(self, handler, body, mode):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def chunk(text):
            data = text.encode() if isinstance(text, str) else text
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            handler.wfile.flush()

        try:
            if mode == "html":
                chunk("<html><body>It works!</body></html>\n")
            elif mode == "nonsense":
                chunk("data: {\"choices\": [{\"text\": 7}]}\n\n")
            elif mode != "silent":
                words = self.text.split(" ")
                for i, word in enumerate(words):
                    word = word if i == 0 else " " + word
                    choice = {"index": 0, "text": word, "finish_reason": None,
                              "logprobs": {"token_logprobs": [-0.01]} if "logprobs" in body else None}
                    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 97}}
                    chunk(f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n")
                    if mode == "cut":
                        handler.close_connection = True
                        return
                    if mode == "slow":
                        self.release.wait(0.7)
                last = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
                chunk(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n")
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.cancelled += 1


def wait_until(holds, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come in {seconds} s")
        time.sleep(0.02)  # the pace of asking; it decides nothing
