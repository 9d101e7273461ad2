"""``ottla consume --share``: prints records as a member of a share group, and acknowledges what was printed, never more.

Records count as printed when the output has taken all of their bytes. Those that it has not taken at the end are released: other
members get them, with one more delivery on their count.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate
from types import FrameType

from ..client import ClusterConnection
from .consume import ConsumeOptions, is_output_closed
from .format_template import Formatter
from .share_member import ShareMember

_LOOK_MS = 200


def consume(connection: ClusterConnection, plan: ConsumeOptions) -> None:
    """Print records. Raises ToolError."""
    plan.check()
    assert plan.share is not None
    formatter = plan.formatter()
    with closing(connection.admin()) as admin:
        member = ShareMember(admin, plan.share, plan.topics)
        with noted_interrupts() as interrupts:
            try:
                _print_until_end(member, plan, formatter, interrupts)
            finally:
                member.close()
                if member.unacknowledged:
                    print(
                        f"ottla: {member.unacknowledged} records that were printed could not be acknowledged, and are "
                        "delivered again",
                        file=sys.stderr,
                    )


def _print_until_end(member: ShareMember, plan: ConsumeOptions, formatter: Formatter, interrupts: list[int]) -> None:
    """Until an interrupt, or one of the plan's ends. Raises BrokenPipeError when the output is not read any more."""
    printed, last_record = 0, time.monotonic()
    while not interrupts and printed != plan.max_records:
        left = None if plan.max_records is None else plan.max_records - printed
        records = member.poll(left)[:left]
        if records:
            taken = _write([formatter(record) for record in records], interrupts)
            member.acknowledge(records[:taken])
            printed += taken
            last_record = time.monotonic()
        elif plan.timeout_ms is not None and time.monotonic() - last_record >= plan.timeout_ms / 1000:
            return
        elif is_output_closed():
            raise BrokenPipeError


def _write(pieces: Sequence[bytes], interrupts: list[int]) -> int:
    """Write to the output, until there is an interrupt; how many of the pieces it has taken. Raises BrokenPipeError."""
    descriptor = sys.stdout.fileno()
    output = select.poll()
    output.register(descriptor, select.POLLOUT)
    data, written = memoryview(b"".join(pieces)), 0
    while written < len(data):
        if output.poll(_LOOK_MS):
            written += os.write(descriptor, data[written : written + select.PIPE_BUF])  # so much does not block
        elif interrupts:
            break
    return bisect_right(list(accumulate(map(len, pieces))), written)


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Interrupts are only noted in the block: one would leave the client amid a request, or what was printed in doubt.

    A second one is raised.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if len(noted) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
