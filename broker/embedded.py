"""An embedded broker for trio programs; ``testing.broker.Broker`` is for all other programs.

Both give an object with ``bootstrap_servers``. Their ``data_dir`` None is a temporary directory that is removed with the
broker. ``listen`` is ``HOST:PORT``, where port 0 picks a free one. ``properties`` are Kafka's broker properties by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import trio

from .config_file import load_config, refuse_unknown
from .server import BrokerFailedError, BrokerServer, StartError


@dataclasses.dataclass(frozen=True)
class RunningBroker:
    """A description of the program's broker; ``metrics_address`` is None without the property ``metrics.listener``."""

    bootstrap_servers: str
    cluster_id: str
    broker_id: int
    data_dir: Path
    metrics_address: str | None = None


def describe(server: BrokerServer) -> RunningBroker:
    """The description of a broker that is ready."""
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

    Raises StartError, SettingError; and BrokerFailedError, which ends the block early when every log directory has failed.
    """
    async with running_server(data_dir, listen, properties) as server:
        yield describe(server)


@contextlib.asynccontextmanager
async def running_server(
    data_dir: str | Path | None, listen: str, properties: Mapping[str, str] | None
) -> AsyncIterator[BrokerServer]:
    """``open_broker`` with access to the broker's parts: ``server.assembly`` exists for as long as the block lasts."""
    refuse_unknown(properties or {})
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-"))
        given = {"listeners": f"PLAINTEXT://{listen}", "log.dirs": str(data_dir), **(properties or {})}
        server = BrokerServer(load_config(given))
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
                    yield server
            finally:
                server.stop()
        if failure is not None:
            raise failure
