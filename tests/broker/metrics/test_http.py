"""/healthz and /readyz before, while and after clients are served; and what asking for metrics costs those who don't."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import pytest
import trio

from ottla.base.config import Config
from ottla.base.seams import TrioWorkers
from ottla.broker.server import BrokerServer, StartError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class HeldWorkers(TrioWorkers):
    """Nothing is done in threads until ``mark_replaceable`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = trio.Event()
        self.mark_replaceable = trio.Event()

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        self.asked.set()
        await self.mark_replaceable.wait()
        return await super().run(function, *args)


def _get(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


async def get(server: BrokerServer, path: str) -> tuple[int, Any]:
    return await trio.to_thread.run_sync(_get, f"http://{server.metrics_address}{path}")


def config(folder: Path, **properties: str) -> Config:
    return Config(
        {
            "log.dirs": str(folder),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "metrics.listener": "127.0.0.1:0",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
    )


async def test_ready_only_while_clients_are_served(tmp_path: Path) -> None:
    workers = HeldWorkers()
    (tmp_path / "t-0").mkdir()  # a log to load
    server = BrokerServer(config(tmp_path), workers=workers)
    ready = trio.Event()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve, ready.set)
            await workers.asked.wait()
            assert (await get(server, "/healthz"))[0] == 200
            status, content = await get(server, "/readyz")
            assert status == 503
            assert content["checks"] == {"logs_loaded": False, "controller_elected": False, "listeners_open": False}
            workers.mark_replaceable.set()
            await ready.wait()
            status, content = await get(server, "/readyz")
            assert (status, content["status"]) == (200, "ready")
            assert all(content["checks"].values())
            status, content = await get(server, "/healthz")
            assert (status, content["status"]) == (200, "ok")

            # The end of the stop waits for the disk, that is for us.
            workers.mark_replaceable, workers.asked = trio.Event(), trio.Event()
            server.stop()
            await workers.asked.wait()
            status, content = await get(server, "/readyz")
            assert status == 503
            assert not content["checks"]["listeners_open"]
            assert (await get(server, "/healthz"))[0] == 200
            workers.mark_replaceable.set()
    with pytest.raises(OSError, match="failed"):
        await trio.open_tcp_stream("127.0.0.1", int(str(server.metrics_address).rpartition(":")[2]))


async def test_metrics_can_be_read_before_the_broker_has_started(tmp_path: Path) -> None:
    class HeldStart(TrioWorkers):
        """Only what makes the text of a scrape is done."""

        def __init__(self) -> None:
            super().__init__()
            self.asked, self.mark_replaceable = trio.Event(), trio.Event()

        async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
            if not args and "generate_latest" in repr(function):
                return await super().run(function, *args)
            self.asked.set()
            await self.mark_replaceable.wait()
            return await super().run(function, *args)

    workers = HeldStart()
    server = BrokerServer(config(tmp_path), workers=workers)

    def read() -> str:
        with urllib.request.urlopen(f"http://{server.metrics_address}/metrics", timeout=20) as response:
            text: str = response.read().decode()
            return text

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve)
            await workers.asked.wait()
            assert "kafka_controller_kafkacontroller_activecontrollercount 0.0" in await trio.to_thread.run_sync(read)
            workers.mark_replaceable.set()
            server.stop()


async def test_a_start_that_fails_is_told_as_without_metrics(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError):
        await BrokerServer(config(tmp_path / "file")).serve()


async def test_an_address_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"metrics\.listener: 'nonsense' is not HOST:PORT"):
        await BrokerServer(config(tmp_path, metrics_listener="nonsense")).serve()


SERVE_ONE = """
import sys, ottla
with ottla.Broker():
    rare = "prometheus_client", "h11", "starlette", "cryptography", "kazoo", "kafka"
    of_security = "acl_rules", "audit", "authorizer", "delegation", "jaas", "jws", "oauthbearer", "password_encoder"
    of_tls = "tls_ciphers", "tls_context", "tls_principal_rules", "tls_stores"
    print(*[name for name in (*rare, *(f"ottla.security.{each}" for each in of_security + of_tls)) if name in sys.modules])
"""


def test_what_a_broker_does_not_use_is_not_imported() -> None:
    """Metrics and security: each module is a part of a millisecond of every start."""
    done = subprocess.run([sys.executable, "-c", SERVE_ONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
