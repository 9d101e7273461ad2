"""``ottla console``: serves the console of a remote cluster until it is stopped."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import trio

from ...base.addresses import join_host_port, split_host_port
from ...base.seams import SystemClock, TrioWorkers
from ...base.tcp import TcpNetwork
from ...base.wording import how_to_install
from .client import ClusterConnection, servers
from .running import ToolError, UsageError

if TYPE_CHECKING:
    from ...console.standalone import ConsoleAlone


def serve(
    connection: ClusterConnection,
    listen: str,
    *,
    writes: bool,
    schemas: Iterable[str] = (),
    schema_registry: str | None = None,
    connect_urls: Sequence[str] = (),
) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises ToolError; a cluster that is not there yet is no failure."""
    try:
        from ...console.decoding import SchemasError, read_decoding
        from ...console.standalone import ConsoleAlone
    except ImportError as error:
        raise ToolError(f"the console needs {how_to_install('console')}: {error}") from None
    try:
        host, port = split_host_port(listen)
    except ValueError as error:
        raise UsageError(f"--listen: {error}") from None
    try:
        decoding = read_decoding(schemas, schema_registry)
    except SchemasError as error:
        raise UsageError(str(error)) from None
    bootstrap = [split_host_port(server) for server in servers(connection.bootstrap_server).split(",")]
    logging.getLogger("ottla").setLevel(min(logging.WARNING, logging.getLogger().level))
    workers = TrioWorkers()
    try:
        console = ConsoleAlone(
            bootstrap,
            connection.security(),
            TcpNetwork(workers),
            SystemClock(),
            workers,
            writes=writes,
            decoding=decoding,
            connect_urls=connect_urls,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    trio.run(_serve, console, host, port)


async def _serve(console: ConsoleAlone, host: str, port: int) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        try:
            await console.bind(host, port)
        except OSError as error:
            raise ToolError(f"--listen {join_host_port(host, port)}: {error.strerror or error}") from None
        print(f"The console is on http://{join_host_port(console.host, console.port)}/", flush=True)
        async with trio.open_nursery() as nursery:

            async def stop_on_signal() -> None:
                async for _ in signals:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(stop_on_signal)
            await console.run()
