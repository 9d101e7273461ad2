"""Every way of stopping a broker with metrics ends in time, whatever clients of its HTTP side do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

import ottla
from ottla.broker.embedded import open_broker

LIMIT_S = 30  # of a stop that takes a fraction of a second, on a machine with much else to do
METRICS = re.compile(r"metrics are on http://127\.0\.0\.1:(\d+)/")
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def stalled(port: int) -> socket.socket:
    """Asks for page after page until the broker takes no more, and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while True:
            client.sendall(GET * 100)
    return client


def half_a_request(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(GET[:20])
    return client


def silent(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def half_a_body(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(GET[:-2] + b"Content-Length: 1000\r\n\r\nx")
    return client


def slow(port: int) -> socket.socket:
    """Sends a byte now and then for as long as it can."""
    client = socket.create_connection(("127.0.0.1", port))

    def send() -> None:
        with contextlib.suppress(OSError):
            for byte in GET[:-1]:
                client.sendall(bytes([byte]))
                threading.Event().wait(0.3)

    threading.Thread(target=send, daemon=True).start()
    return client


HOW = (stalled, half_a_request, silent, half_a_body, slow)


@contextlib.contextmanager
def clients(port: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for connect in HOW:
            stack.enter_context(connect(port))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "data")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        while (match := METRICS.search(line := process.stderr.readline())) is None:
            assert line
        with clients(int(match.group(1))):
            process.send_signal(number)
            _, log = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, log
        assert "Traceback" not in log
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()


def port_of(address: str | None) -> int:
    assert address is not None
    return int(address.rpartition(":")[2])


def within_limit(function: Callable[[], None]) -> None:
    """Call it in a thread, which is left behind when it takes too long."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_broker_in_a_thread() -> None:
    broker = ottla.Broker(properties={"metrics.listener": "127.0.0.1:0"})
    broker.start()
    with clients(port_of(broker.metrics_address)):
        within_limit(broker.stop)


@pytest.mark.slow
@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_broker_in_a_trio_program(is_cancelled: bool) -> None:
    stack = contextlib.ExitStack()
    with stack, trio.fail_after(LIMIT_S + 30), trio.CancelScope() as scope:
        async with open_broker(properties={"metrics.listener": "127.0.0.1:0"}) as broker:
            await trio.to_thread.run_sync(stack.enter_context, clients(port_of(broker.metrics_address)))
            if is_cancelled:
                scope.cancel()
            await trio.lowlevel.checkpoint_if_cancelled()
