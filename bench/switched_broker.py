"""A broker whose metrics are switched while it runs; ``python -m bench.switched_broker FOLDER``.

It prints the port it serves, then ``on`` or ``off`` each time a line is read from stdin, after which the requests of new
connections are counted and timed, or not. Nothing else changes: with two processes, the different layout of their memory
would make a larger difference than the one to be measured.
"""

from __future__ import annotations

import gc
import sys

import trio

from ottla.broker.embedded import running_server


async def _serve(folder: str) -> None:
    async with running_server(folder, "127.0.0.1:0", {"metrics.listener": "127.0.0.1:0"}) as server:
        gc.collect()
        gc.freeze()  # as `ottla serve` does
        print(server.endpoints[0].port, flush=True)
        monitor, observer = server.monitor, server.monitor.observer
        lines = trio.wrap_file(sys.stdin)
        while await lines.readline():
            monitor.observer = observer if monitor.observer is None else None
            print("off" if monitor.observer is None else "on", flush=True)


if __name__ == "__main__":
    trio.run(_serve, sys.argv[1])
