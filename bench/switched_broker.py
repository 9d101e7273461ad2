"""A broker whose metrics are switched while it runs; ``python -m bench.switched_broker FOLDER``.

It prints the port it serves, then ``on`` or ``off`` each time a line is read from stdin, after which the requests of new
connections are counted and timed, or aren't. All else stays as it is: two processes never have their memory in the same
places, and that makes more of a difference than what is to be measured.
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
