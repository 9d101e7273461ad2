"""A broker with a console whose event loop is watched; ``python -m bench.console_broker FOLDER``.

It prints a line of JSON with the ports, and then one for each line that is read from stdin:

* ``steps``: the longest steps of the loop since the last ``steps``, as ``[CPU ms, wall ms, task]`` (``loop_steps``).
* ``expire``: the data that the console has read for pages expires.

It ends with the end of stdin.
"""

from __future__ import annotations

import gc
import json
import sys

import trio

from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide
from ottla.view.cached import Cached

from .loop_steps import Steps


async def _serve(folder: str) -> None:
    config = load_config(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": folder,
            "console.listener": "127.0.0.1:0",
            "offsets.topic.replication.factor": "1",
        }
    )
    server = BrokerServer(config, make_console=ConsoleSide)
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, ready.set)
        await ready.wait()
        gc.collect()
        gc.freeze()  # as `ottla serve` does
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        assert server.console_address is not None
        ports = {"broker": server.endpoints[0].port, "console": int(server.console_address.rpartition(":")[2])}
        print(json.dumps(ports), flush=True)
        side = server._console
        assert isinstance(side, ConsoleSide)
        lines = trio.wrap_file(sys.stdin)
        while line := (await lines.readline()).strip():
            answer = steps.take() if line == "steps" else _expire(side)
            print(json.dumps(answer), flush=True)
        server.stop()


def _expire(side: ConsoleSide) -> int:
    """Expire it. Returns how many items there were."""
    known = [each for each in vars(side.view).values() if isinstance(each, Cached)]
    for each in known:
        each.forget()
    return len(known)


if __name__ == "__main__":
    trio.run(_serve, sys.argv[1])
