"""``RebalanceHold``: a hold on the rebalances of a group, by a test."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType

from ..base.errors import KafkaError

__tracebackhide__ = True  # a failure points at the caller's line


class RebalanceHold:
    """Rebalances of one group that do not end before ``release``, or before the block of ``with`` does."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release
        self.reached = threading.Event()
        """Set in the broker's loop when a rebalance waits."""

    def wait(self, timeout: float = 10.0) -> None:
        """Block until a rebalance of the group waits for the release. Raises TimeoutError after ``timeout`` seconds."""
        if not self.reached.wait(timeout):
            raise TimeoutError(f"no rebalance waited for the release within {timeout} s")

    def release(self) -> None:
        """Let rebalances of the group continue. A second call does nothing, and none is needed where the broker has stopped."""
        with contextlib.suppress(KafkaError):
            self._release()

    def __enter__(self) -> RebalanceHold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
