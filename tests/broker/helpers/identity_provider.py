"""An identity provider over HTTP, as a broker asks it for keys and tokens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ottla.tests.security.helpers.oauth_tokens import jwks


class Provider(ThreadingHTTPServer):
    """Answers with ``content`` and ``status``, or leads to ``elsewhere``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = jwks()
        self.status = 200
        self.elsewhere = ""
        self.posted: list[tuple[str, str]] = []
        """Authorization and body of each."""
        self.url = f"http://127.0.0.1:{self.server_port}/keys"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.posted.append((self.headers["Authorization"], body))
        self.do_GET()

    def do_GET(self) -> None:
        if self.path == "/keys" and self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(server: Provider) -> Iterator[Provider]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
