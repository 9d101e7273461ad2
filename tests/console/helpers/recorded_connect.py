"""An HTTP server that answers as a worker of Kafka Connect has, for tests that need no worker.

``connect_answers.json`` has the answers of a distributed worker of Apache Kafka 4.3.1 with three file connectors, of which one
cannot write its file: by method and target, the status and the body. Folders and the worker's address were replaced in it.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LIST = "GET /connectors?expand=info&expand=status"
_POLL_SECONDS = 0.01
"""How soon the server notices that it is to end."""
_RECORDED = json.loads(Path(__file__).with_name("connect_answers.json").read_text())


class RecordedConnect:
    """The server. ``answers`` may be changed by a test: a status, and bytes or what JSON is made of."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = copy.deepcopy(_RECORDED)
        self.asked: list[str] = []
        """Method and target of each request."""
        self.may_answer = threading.Event()
        """Clear it, and requests wait."""
        self.may_answer.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.place = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.place}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)
        self._thread.start()

    @property
    def connectors(self) -> dict[str, Any]:
        """What the list of connectors has, by name."""
        listed: dict[str, Any] = self.answers[LIST][1]
        return listed

    def changes(self) -> list[str]:
        """The requests that were no questions."""
        return [each for each in self.asked if not each.startswith("GET ")]

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        connect = self

        class RecordedAnswers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = f"{self.command} {self.path}"
                connect.asked.append(asked)
                connect.may_answer.wait()
                status, told = connect.answers.get(asked) or connect.answers["POST /connectors/nothing/restart"]
                body = told if isinstance(told, bytes) else b"" if told is None else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Location", "/")
                if status != 204:
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is written."""

        return RecordedAnswers


@contextmanager
def recorded_connect() -> Iterator[RecordedConnect]:
    """A context with a server of its own."""
    connect = RecordedConnect()
    try:
        yield connect
    finally:
        connect.close()
