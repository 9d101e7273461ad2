"""A few transactions, and a crash at one chosen change of the disk: the n-th since the first transaction began.

Run for each change from the first to the last, it covers every step of AddPartitionsToTxn, Produce, TxnOffsetCommit, EndTxn
and the end markers. The producer retries until it gets a response, as Kafka's clients do.
"""

from __future__ import annotations

import trio

from . import determinism
from .checkers import Checker
from .clients import Administrator
from .history import History
from .producers import TransactionalProducer
from .readers import Reader
from .world import Mode, World

_TRANSACTIONS = 3


class SteadyProducer(TransactionalProducer):
    """A producer that does not die."""

    dies = False


def run(mode: Mode, *, is_v2: bool, at: int) -> tuple[list[str], int, int]:
    """Crash at the ``at``-th change (0: never). Returns the violations, and the numbers of changes and of crashes."""
    world: World | None = None
    changes = 0

    async def main() -> None:
        nonlocal world, changes
        world = World(1, mode)
        history = History()
        readers = [
            Reader(world, history, "uncommitted", committed=False),
            Reader(world, history, "committed", committed=True),
        ]
        producer = SteadyProducer(world, history, "t", 0.1, is_v2=is_v2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.machine.keep_running)
            await world.machine.wait_ready()
            await Administrator(world, history, "admin").create_topics()
            await producer.init()
            before = world.machine.disk.operations
            if at:
                world.machine.crash_at(at, lambda path: True, power_lost=mode is not Mode.KILLS)
            for _ in range(_TRANSACTIONS):
                await producer.transaction()
            await trio.sleep(0.5)  # the last markers are written after the response
            changes = world.machine.disk.operations - before
            await world.machine.wait_ready()
            await producer.init()
            await trio.sleep(0.5)
            await Checker(world, history, readers).check()
            nursery.cancel_scope.cancel()

    determinism.run(main, 1)
    assert world is not None
    return world.violations, changes, world.machine.lives - 1
