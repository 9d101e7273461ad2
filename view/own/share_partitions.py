"""Share partitions that this broker leads, as rows (KIP-932).

Who has which records is known only to the leader of a partition, and only while members of the group fetch from it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...share_partitions.delivery import ACQUIRED, AVAILABLE
from ...share_partitions.manager import SharePartitionEntry
from ..inside_rows import SharePartitionRow
from ..pace import Pace


async def share_partition_rows(entries: Iterable[SharePartitionEntry], pace: Pace) -> list[SharePartitionRow]:
    """Of those that are loaded, in the order of topics and numbers."""
    rows = []
    for entry in entries:
        led = entry.led
        if led is None or led.is_dropped:
            continue
        sizes = {ACQUIRED: 0, AVAILABLE: 0}
        for batch in list(led.state.batches):
            for run in batch.runs:
                if run.state in sizes:
                    sizes[run.state] += run.size
            if pace.is_due(len(batch.runs)):
                await pace.rest()
        state = led.state
        rows.append(
            SharePartitionRow(
                entry.partition.topic,
                entry.key.partition,
                state.start_offset,
                state.next_offset,
                sizes[ACQUIRED],
                sizes[AVAILABLE],
                state.redelivered,
                state.archived,
                led.lock_timeouts,
            )
        )
    return sorted(rows, key=lambda row: (row.topic, row.number))
