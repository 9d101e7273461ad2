"""The periodic tasks of the active controller, and the time of the next one.

There is no task that writes NoOpRecords. Kafka writes one each 500 ms, and everything that waited for the log to move on has
something else to wait for:

- A broker that starts is unfenced once it has applied its own registration (KAFKA-13955), and a controlled shutdown ends once all
  have applied the records that began it. Both are records that are there.
- A follower learns of the high watermark by its next Fetch, which waits half a second at most, and at once where the request says
  which one it knows (version 18).
- A new leader's epoch has a record, LeaderChange, from Raft. Whether voters are alive is told by their Fetch requests.
- ``kraft.version`` is no record of the controller: who finalizes it writes one NoOpRecord, to wait for (``features``).

So an idle controller writes nothing. The lag that brokers of Apache Kafka show, in time since the last record, grows meanwhile.

Sessions are no task that comes round: the first one that ends says when brokers are to be looked at. Source: Kafka's
PeriodicTaskControlManager and QuorumController.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from .context import OperationContext
from .result import ControllerResult

_AT_ONCE_MS = 10
"""Between two turns of a task that had more to do than fits in one (Kafka's DEFAULT_IMMEDIATE_PERIOD_NS)."""

Work = Callable[[OperationContext], ControllerResult[bool]]
"""One turn; the response says whether there is more to do at once."""


@dataclasses.dataclass(frozen=True)
class PeriodicTask:
    name: str
    work: Work
    period_ms: int


class PeriodicTasks:
    """When tasks are due, in ms of a monotonic clock."""

    def __init__(self, tasks: Sequence[PeriodicTask], now_ms: int) -> None:
        self._due = {task.name: now_ms + task.period_ms for task in tasks}
        self._tasks = {task.name: task for task in tasks}

    def take_due(self, now_ms: int) -> PeriodicTask | None:
        """A task whose time has come; its next turn is a period away."""
        for name, due in self._due.items():
            if due <= now_ms:
                task = self._tasks[name]
                self._due[name] = now_ms + task.period_ms
                return task
        return None

    def run_soon(self, task: PeriodicTask, now_ms: int) -> None:
        """The task has more to do."""
        self._due[task.name] = now_ms + _AT_ONCE_MS

    def next_due(self) -> int | None:
        """None without tasks."""
        return min(self._due.values(), default=None)
