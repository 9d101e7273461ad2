"""A broker inside a program: ``open_broker`` for trio programs, ``Broker`` for all others and for tests.

Both take ``data_dir`` (None: a temporary folder that goes with the broker), ``listen`` (``HOST:PORT``, port 0 picks a free
one) and ``properties`` (Kafka's broker properties by name), and give an object with ``bootstrap_servers``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType

import trio

from ..base.config import Config
from .config_file import load_config
from .server import BrokerFailedError, BrokerServer, StartError


@dataclasses.dataclass(frozen=True)
class RunningBroker:
    """What a program may know of a broker it runs; ``metrics_address`` with the property ``metrics.listener`` only."""

    bootstrap_servers: str
    cluster_id: str
    broker_id: int
    data_dir: Path
    metrics_address: str | None = None


def _config(data_dir: str | Path, listen: str, properties: Mapping[str, str] | None) -> Config:
    return load_config({"listeners": f"PLAINTEXT://{listen}", "log.dirs": str(data_dir), **(properties or {})})


def _describe(server: BrokerServer) -> RunningBroker:
    assert server.assembly is not None
    return RunningBroker(
        server.bootstrap_servers,
        server.assembly.cluster_id,
        server.broker_id,
        Path(server.data_dirs[0]).absolute(),
        server.metrics_address,
    )


@contextlib.asynccontextmanager
async def open_broker(
    *, data_dir: str | Path | None = None, listen: str = "127.0.0.1:0", properties: Mapping[str, str] | None = None
) -> AsyncIterator[RunningBroker]:
    """Run a broker for as long as the block lasts.

    Raises StartError, SettingError; and BrokerFailedError, which ends the block early when every data folder has failed.
    """
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-"))
        server = BrokerServer(_config(data_dir, listen, properties))
        ready = trio.Event()
        failure: StartError | BrokerFailedError | None = None

        async def serve() -> None:
            nonlocal failure
            try:
                await server.serve(on_ready=ready.set)
            except (StartError, BrokerFailedError) as error:
                failure = error
                ready.set()
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                await ready.wait()
                if failure is None:
                    yield _describe(server)
            finally:
                server.stop()
        if failure is not None:
            raise failure


class Broker:
    """A broker in a thread of its own, for ``with``; its attributes are those of ``RunningBroker``."""

    bootstrap_servers: str
    cluster_id: str
    broker_id: int
    data_dir: Path
    metrics_address: str | None

    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = (data_dir, listen, properties)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None

    def start(self) -> Broker:
        """Start; returns when clients can connect. Raises StartError, SettingError."""
        self._thread = threading.Thread(target=self._run, name="ottla-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop as SIGTERM does; returns when everything is flushed."""
        if self._thread is None:
            return
        assert self._token is not None
        assert self._stop is not None
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._stop.set)
        self._thread.join()
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        data_dir, listen, properties = self._arguments
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        async with open_broker(data_dir=data_dir, listen=listen, properties=properties) as running:
            self.__dict__.update(dataclasses.asdict(running))
            self._ready.set()
            await self._stop.wait()
