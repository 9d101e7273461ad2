"""The requests of ``bench.console`` to a console: single pages, a search until it ends or is cancelled, pages that stay open."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LIMIT_S = 300
_AGAIN = re.compile(r'hx-trigger="every (\d+)s"')
_SERIES = re.compile(r'data-series="([a-z_,]+)"')
_CHART_SECONDS = 2.0  # as in console.js


class Page(NamedTuple):
    """``first`` is when its first byte came, in seconds after the request; ``body`` includes the head."""

    status: int
    first: float
    body: bytes


def _asked(port: int, target: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    return connection


def get(port: int, target: str) -> Page:
    """Request one page, on a new connection."""
    began = time.perf_counter()
    with _asked(port, target) as connection:
        got = connection.recv(1 << 16)
        first = time.perf_counter() - began
        body = got
        while got := connection.recv(1 << 16):
            body += got
    return Page(int(body[9:12]), first, body)


class Search:
    """A search under way; ``events`` yields the names of its events as they come."""

    def __init__(self, port: int, target: str) -> None:
        self._connection = _asked(port, target)

    def events(self) -> Iterator[str]:
        for line in self._connection.makefile("r", encoding="utf-8"):
            if line.startswith("event: "):
                yield line[7:].strip()

    def leave(self) -> None:
        """Close the connection, as a browser does when its page is closed."""
        self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class OpenPages:
    """``with OpenPages(port, targets):`` each page is requested repeatedly, as its own scripts do."""

    def __init__(self, port: int, targets: Sequence[str]) -> None:
        self._port = port
        self._ended = threading.Event()
        asks = [(target, seconds) for page in targets for target, seconds in _asked_by(port, page)]
        self._threads = [
            threading.Thread(target=self._look, args=(target, seconds, seconds * number / len(asks)))
            for number, (target, seconds) in enumerate(asks)
        ]

    def __enter__(self) -> OpenPages:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _look(self, target: str, seconds: float, after: float) -> None:
        """Request one target repeatedly on one connection, which browsers keep open."""
        if self._ended.wait(after):
            return
        request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", self._port), timeout=LIMIT_S) as connection:
            reader = connection.makefile("rb")
            while True:
                connection.sendall(request)
                length = 0
                while (line := reader.readline().lower()) != b"\r\n":
                    if line.startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                reader.read(length)
                if self._ended.wait(seconds):
                    return


def _asked_by(port: int, page: str) -> list[tuple[str, float]]:
    """What a page requests while it is open, each with its interval in seconds: itself, and the points of its charts."""
    html = get(port, page).body.decode()
    asks = [(page, float(seconds)) for seconds in _AGAIN.findall(html)]
    series = ",".join(_SERIES.findall(html))
    return [*asks, (f"/history.json?span=minute&series={series}", _CHART_SECONDS)] if series else asks
